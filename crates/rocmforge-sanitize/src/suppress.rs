//! Suppressions: findings that are known and not to be told, from a TOML file.

use crate::error::{Error, Place};
use crate::files;
use crate::outcome::Finding;
use crate::toml_reader::{Source, Table, Value, nearest};
use rocmforge_amdgcn::Frame;
use rocmforge_sim::{Report, ReportKind, Tool};
use std::path::Path;

/// Bytes of a suppression file, at most.
const MAX_TEXT: u64 = 1 << 20;
/// The tools that reports come from.
const TOOLS: &[(&str, Tool)] = &[
    ("memcheck", Tool::Memcheck),
    ("initcheck", Tool::Initcheck),
    ("racecheck", Tool::Racecheck),
    ("synccheck", Tool::Synccheck),
    ("api", Tool::Api),
];

/// Findings that are left out: those that all of the given properties fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Suppression {
    /// Where it stands.
    pub place: Place,
    /// The kind, as the JSON report names it.
    pub kind: Option<ReportKind>,
    /// The tool.
    pub tool: Option<Tool>,
    /// The kernel of either side.
    pub kernel: Option<String>,
    /// A part of that kernel's name.
    pub kernel_substring: Option<String>,
    /// The end of the path of a source file, from a component on.
    pub file: Option<String>,
    /// The line in it.
    pub line: Option<u32>,
    /// A function, of the kernel or inlined into it.
    pub function: Option<String>,
}

/// A suppression file that has been read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Suppressions {
    /// Its suppressions, in order.
    pub all: Vec<Suppression>,
}

impl Suppressions {
    /// Reads a suppression file.
    ///
    /// # Errors
    /// It cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(path, &files::text(path, MAX_TEXT)?)
    }

    /// Understands the text of a suppression file; `path` is for messages, and is not opened.
    ///
    /// # Errors
    /// The text is no TOML, or not a suppression file; the error names the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let source = Source::new(path, text);
        let document = source.parse(text)?;
        let root = Table::new(&source, "a suppression file", document.get_ref(), source.place(0));
        let mut all = Vec::new();
        for value in root.need("suppress")?.array()? {
            all.push(suppression(&value)?);
        }
        root.finish()?;
        Ok(Self { all })
    }

    /// The first suppression that fits a finding, by its index.
    pub fn of(&self, finding: &Finding) -> Option<usize> {
        self.all
            .iter()
            .position(|suppression| suppression.fits(&finding.report))
    }
}

fn suppression(value: &Value<'_>) -> Result<Suppression, Error> {
    let table = value.table("a suppression")?;
    let text = |key| table.get(key).map(|text| text.str().map(str::to_owned)).transpose();
    let found = Suppression {
        place: table.place(),
        kind: table.get("kind").map(|name| kind(&name)).transpose()?,
        tool: table.get("tool").map(|name| name.one_of(TOOLS)).transpose()?,
        kernel: text("kernel")?,
        kernel_substring: text("kernel_substring")?,
        file: text("file")?,
        line: table
            .get("line")
            .map(|line| line.integer(1, u64::from(u32::MAX)).map(|line| line as u32))
            .transpose()?,
        function: text("function")?,
    };
    // For the reader of the file.
    text("reason")?;
    table.finish()?;
    if found.line.is_some() && found.file.is_none() {
        return Err(value.wrong("has a `line` and no `file`"));
    }
    let nothing = Suppression {
        place: found.place.clone(),
        kind: None,
        tool: None,
        kernel: None,
        kernel_substring: None,
        file: None,
        line: None,
        function: None,
    };
    if found == nothing {
        return Err(value.wrong("would leave out every finding; say which with `kind`, `tool`, `kernel` or `file`"));
    }
    Ok(found)
}

fn kind(value: &Value<'_>) -> Result<ReportKind, Error> {
    let name = value.str()?;
    let kinds = ReportKind::ALL.map(|kind| (kind, kind.name()));
    let found = kinds.iter().find(|(_, known)| known == name);
    found.map(|(kind, _)| *kind).ok_or_else(|| {
        let names = || kinds.iter().map(|(_, name)| name.as_str());
        value.wrong(match nearest(name, names()) {
            Some(near) => format!("is \"{name}\": did you mean \"{near}\"?"),
            None => format!("is \"{name}\"; there are: {}", names().collect::<Vec<_>>().join(", ")),
        })
    })
}

impl Suppression {
    fn fits(&self, report: &Report) -> bool {
        let other = report.other.as_deref();
        let kernels = || {
            let other = other.and_then(|other| other.kernel.as_deref());
            report.kernel.as_deref().into_iter().chain(other)
        };
        let mut frames = report
            .frames
            .iter()
            .chain(other.into_iter().flat_map(|other| &other.frames));
        let placed = self.file.is_none() && self.function.is_none();
        self.kind.is_none_or(|kind| kind == report.kind)
            && self.tool.is_none_or(|tool| tool == report.tool())
            && self
                .kernel
                .as_ref()
                .is_none_or(|name| kernels().any(|kernel| kernel == name))
            && self
                .kernel_substring
                .as_ref()
                .is_none_or(|part| kernels().any(|kernel| kernel.contains(part.as_str())))
            && (placed || frames.any(|frame| self.fits_frame(frame)))
    }

    fn fits_frame(&self, frame: &Frame) -> bool {
        // Whole components: `add.hip` is not the end of `my_add.hip`.
        let ends = |file: &String| Path::new(&frame.file).ends_with(file);
        self.file.as_ref().is_none_or(ends)
            && self.line.is_none_or(|line| line == frame.line)
            && self.function.as_ref().is_none_or(|name| *name == frame.function)
    }
}
