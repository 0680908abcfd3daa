//! Errors of chat templates.

use std::io;

use rocmforge_gguf::GgufError;
use rocmforge_jinja::{Cause, Error, MAX_BYTES, MAX_WORK};

/// Why a chat template cannot be read or rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// A metadata key has another type.
    #[error(transparent)]
    Metadata(#[from] GgufError),
    /// The template's source is too long.
    #[error("the chat template has {bytes} bytes, more than {limit}")]
    TemplateTooLong {
        /// Its length.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
    },
    /// The source is no valid template.
    #[error("the chat template cannot be parsed: {0}")]
    Parse(#[source] TemplateError),
    /// The template failed.
    #[error("the chat template failed: {0}")]
    Render(#[source] TemplateError),
    /// The template refused the messages, with its own words.
    #[error("the chat template refuses the messages: {message}")]
    Refused {
        /// What the template says.
        message: String,
    },
    /// The template did more work than a prompt may take.
    #[error("the chat template took more than {limit} units of work, each a byte read or written (line {line})")]
    TooMuchWork {
        /// The most units of work allowed; each is a byte read or written.
        limit: u64,
        /// The line where it stopped.
        line: u32,
    },
    /// The template asked for more memory than a prompt may take.
    #[error("the chat template asked for {bytes} bytes of memory, more than {limit} (line {line})")]
    TooMuchMemory {
        /// The bytes it would have held.
        bytes: usize,
        /// The most bytes allowed.
        limit: usize,
        /// The line where it stopped.
        line: u32,
    },
    /// Something in the template or in its input is nested too deeply.
    #[error("the chat template is refused: {what} nested more than {limit} deep (line {line})")]
    TooDeep {
        /// What is nested.
        what: &'static str,
        /// The deepest allowed.
        limit: usize,
        /// The line where it stopped; 0 for the input.
        line: u32,
    },
    /// The thread on which templates run could not be started.
    #[error("the chat template cannot be run on a thread of its own")]
    Thread(#[source] io::Error),
    /// The final message is to be continued, but the template does not show its content.
    #[error("the final message cannot be continued: {reason}")]
    NoFinalMessage {
        /// What is missing.
        reason: &'static str,
    },
    /// A role that is not in [`Role::ALL`](super::Role::ALL).
    #[error("the role {role:?} is not known; known: {known}")]
    UnknownRole {
        /// The role.
        role: String,
        /// The known roles.
        known: String,
    },
    /// A message in JSON has a key of another type than messages have.
    #[error("the message's {key:?} is not {wanted}")]
    Message {
        /// The key.
        key: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// The messages and the template hold all characters that could mark users' text.
    #[error("no private-use character is free to mark users' text")]
    NoFreeMark,
    /// A file of a Hugging Face directory cannot be used.
    #[error(transparent)]
    File(#[from] crate::FileError),
}

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct TemplateError {
    /// The line, from 1.
    pub line: u32,
    /// What is wrong.
    pub message: String,
}

impl ChatError {
    /// The error of a template that was parsed, or of one that ran.
    pub(super) fn of_template(error: Error, kind: fn(TemplateError) -> Self) -> Self {
        let line = error.line;
        match error.cause {
            Cause::Wrong(message) => kind(TemplateError { line, message }),
            Cause::Refused(message) => Self::Refused { message },
            Cause::Work => Self::TooMuchWork { limit: MAX_WORK, line },
            Cause::Memory { bytes } => Self::TooMuchMemory {
                bytes,
                limit: MAX_BYTES,
                line,
            },
            Cause::Depth { what, limit } => Self::TooDeep { what, limit, line },
        }
    }
}
