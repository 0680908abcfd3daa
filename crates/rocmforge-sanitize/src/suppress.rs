//! Suppressions: known findings that are not reported, from a TOML file.

use crate::error::{Error, Place};
use crate::files;
use crate::outcome::Finding;
use crate::toml_reader::{Source, Table, Value, nearest};
use rocmforge_sim::{ReportFilter, ReportKind, Tool};
use std::path::Path;

/// Bytes of a suppression file, at most.
const MAX_TEXT: u64 = 1 << 20;

/// Findings that are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Suppression {
    /// Where it stands.
    pub place: Place,
    /// Which findings: those whose report has all of the given properties.
    pub filter: ReportFilter,
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
            .position(|suppression| suppression.filter.fits(&finding.report))
    }
}

fn suppression(value: &Value<'_>) -> Result<Suppression, Error> {
    let table = value.table("a suppression")?;
    // An empty name, part or path would fit every report.
    let text = |key| {
        let some = |value: Value<'_>| match value.str()? {
            "" => Err(value.wrong("is empty")),
            text => Ok(text.to_owned()),
        };
        table.get(key).map(some).transpose()
    };
    let filter = ReportFilter {
        kind: table.get("kind").map(|name| kind(&name)).transpose()?,
        tool: table.get("tool").map(|name| tool(&name)).transpose()?,
        kernel: text("kernel")?,
        kernel_substring: text("kernel_substring")?,
        file: text("file")?,
        line: table
            .get("line")
            .map(|line| line.integer(1, u64::from(u32::MAX)).map(|line| line as u32))
            .transpose()?,
        function: text("function")?,
    };
    let place = table.place();
    // For the reader of the file.
    text("reason")?;
    table.finish()?;
    if filter.line.is_some() && filter.file.is_none() {
        return Err(value.wrong("has a `line` and no `file`"));
    }
    if filter == ReportFilter::default() {
        return Err(value.wrong("would leave out every finding; say which with `kind`, `tool`, `kernel` or `file`"));
    }
    Ok(Suppression { place, filter })
}

fn tool(value: &Value<'_>) -> Result<Tool, Error> {
    let names = Tool::ALL.map(|tool| (tool.to_string(), tool));
    value.one_of(&names.each_ref().map(|(name, tool)| (name.as_str(), *tool)))
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
