//! Errors inside the interpreter, before they have a place in the template.

use std::fmt;

use super::meter::{MAX_BYTES, MAX_WORK};

/// Why a template cannot be parsed or rendered, with the line where it stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind, with its figures.
    pub cause: Cause,
    /// The line, from 1; 0 where it is not known yet.
    pub line: u32,
}

/// Kinds of errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The template is wrong, or does with a value what the value does not allow.
    Wrong(String),
    /// The template called `raise_exception`.
    Refused(String),
    /// More work than a rendering may do.
    Work,
    /// More memory than a rendering may hold.
    Memory {
        /// The bytes that were asked for, those held before among them.
        bytes: usize,
    },
    /// Something is nested too deeply.
    Depth {
        /// What is nested.
        what: &'static str,
        /// The deepest allowed.
        limit: usize,
    },
}

impl Error {
    pub(super) fn new(cause: Cause) -> Self {
        Self { cause, line: 0 }
    }

    /// Names the line, unless an inner place was named before.
    pub(super) fn at(mut self, line: u32) -> Self {
        if self.line == 0 {
            self.line = line;
        }
        self
    }
}

/// An error of the kind [`Cause::Wrong`].
pub(super) fn wrong(message: impl Into<String>) -> Error {
    Error::new(Cause::Wrong(message.into()))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.cause {
            Cause::Wrong(message) | Cause::Refused(message) => f.write_str(message),
            Cause::Work => write!(f, "more than {MAX_WORK} units of work"),
            Cause::Memory { bytes } => write!(f, "{bytes} bytes of memory, more than {MAX_BYTES}"),
            Cause::Depth { what, limit } => write!(f, "{what} nested more than {limit} deep"),
        }
    }
}

impl std::error::Error for Error {}
