//! The launch file: what to run, on what data, under which checks.

mod argument;
mod buffer;
mod parse;
mod reference;
mod steps;

pub(crate) use argument::scalar;
pub(crate) use parse::{seed_range, tool_set};
pub use steps::{Action, Copy, Launch, Step};

use crate::dtype::{DType, Number};
use crate::error::{Error, Place};
use crate::files;
use crate::fill::Fill;
use rocmforge_amdgcn::Tools;
use rocmforge_code_object::Bundle;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Seeds of one file, at most.
pub const MAX_SEEDS: usize = 1_000_000;
/// Bytes of all buffers together, at most.
pub const MAX_BYTES: u64 = 8 << 30;
/// Bytes of a launch file, at most.
const MAX_TEXT: u64 = 16 << 20;

/// A launch file that has been read. Paths in it are relative to the file, and lead nowhere outside of its folder unless
/// [`LaunchFile::allow_outside`] says so.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFile {
    /// The file, for messages.
    pub place: Place,
    /// Whether its paths may lead outside of its folder. No launch file can say so itself: it is `--allow-outside`.
    pub allow_outside: bool,
    /// The code objects; at least one.
    pub objects: Vec<ObjectRef>,
    /// The processor whose code is taken out of an object that has code for several.
    pub arch: Option<&'static str>,
    /// The seeds; each is one run.
    pub seeds: Vec<u64>,
    /// Which checks to run.
    pub tools: Tools,
    /// In which order streams run.
    pub schedule: ScheduleKind,
    /// Drops every ordering that is an accident of today's HIP.
    pub strict: bool,
    /// Instructions a launch may execute before it counts as endless.
    pub budget: u64,
    /// The buffers: named ones first, then those of arguments.
    pub buffers: Vec<Buffer>,
    /// The launches, in order.
    pub launches: Vec<Launch>,
    /// What to do, in order: the launches, and what lies between them.
    pub steps: Vec<Step>,
}

/// A code object that a launch file names.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectRef {
    /// What launches call it; none for the only one.
    pub name: Option<String>,
    /// Where it lies.
    pub path: PathBuf,
    /// Where it is named.
    pub place: Place,
}

/// [`rocmforge_sim::Schedule`] without its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ScheduleKind {
    /// Nothing runs before it must.
    Lazy,
    /// Everything runs as soon as it may.
    Eager,
    /// The youngest stream first.
    Reverse,
    /// A seeded choice.
    #[default]
    Random,
    /// Seeded priorities that change at few points.
    Pct,
}

/// Device memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// What reports call it.
    pub label: String,
    /// Where it is declared.
    pub place: Place,
    /// Its elements.
    pub dtype: DType,
    /// Its dimensions.
    pub shape: Vec<usize>,
    /// What it holds before the first launch.
    pub fill: Fill,
    /// The elements that the fill is written to; none: all. The others count as never written.
    pub written: Option<Vec<Range<usize>>>,
    /// Where to write what it holds after the last; `.npy` or raw.
    pub save: Option<PathBuf>,
}

impl Buffer {
    /// Its elements.
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.count() * self.dtype.size()
    }
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An address in a buffer.
    Buffer {
        /// Which: an index into [`LaunchFile::buffers`].
        index: usize,
        /// Bytes from its start.
        offset: u64,
    },
    /// A number that takes the kernel's size for it.
    Number(Number),
    /// Bytes as they are: a number of a given type, or several behind one another.
    Bytes(Vec<u8>),
}

impl LaunchFile {
    /// Reads a launch file.
    ///
    /// # Errors
    /// It cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = files::read(path, MAX_TEXT)?;
        let is_bundle = || Bundle::parse(&bytes).is_ok_and(|bundle| bundle.is_some());
        if bytes.starts_with(b"\x7fELF") || is_bundle() {
            return Err(Error::CodeObject(path.to_owned()));
        }
        Self::parse(path, &files::text_of(path, bytes)?)
    }

    /// The buffers that are there from the start; the others have a step that allocates them.
    pub fn at_first(&self) -> Vec<usize> {
        let mut at_first = vec![true; self.buffers.len()];
        for step in &self.steps {
            if let Action::Alloc { buffer } = step.action {
                at_first[buffer] = false;
            }
        }
        (0..self.buffers.len()).filter(|buffer| at_first[*buffer]).collect()
    }

    /// Where the files that it names are.
    pub(crate) fn folder(&self) -> files::Folder<'_> {
        files::Folder {
            path: self.place.file.parent().unwrap_or(Path::new("")),
            allow_outside: self.allow_outside,
        }
    }

    /// Understands the text of a launch file; `path` is for messages and for the paths in it, and is not opened.
    ///
    /// # Errors
    /// The text is no TOML, or not a launch file; the error names the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        parse::launch_file(path, text)
    }
}
