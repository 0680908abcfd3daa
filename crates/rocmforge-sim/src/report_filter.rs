//! Filter of reports: properties that a report has, for findings that are known and to be left out.

use crate::report::{Report, ReportKind, Tool};
use rocmforge_amdgcn::Frame;
use std::path::Path;

/// Properties of a report. It fits those that have all of the given ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct ReportFilter {
    /// The kind.
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

impl ReportFilter {
    /// Whether a report has all of the given properties.
    pub fn fits(&self, report: &Report) -> bool {
        let other = report.other.as_deref();
        let kernels = || {
            let other = other.and_then(|other| other.kernel.as_deref());
            report.kernel.as_deref().into_iter().chain(other)
        };
        let mut frames = report
            .frames
            .iter()
            .chain(other.into_iter().flat_map(|other| &other.frames));
        let anywhere = self.file.is_none() && self.function.is_none();
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
            && (anywhere || frames.any(|frame| self.fits_frame(frame)))
    }

    fn fits_frame(&self, frame: &Frame) -> bool {
        // Whole components: `add.hip` is not the end of `my_add.hip`.
        let ends = |file: &String| Path::new(&frame.file).ends_with(file);
        self.file.as_ref().is_none_or(ends)
            && self.line.is_none_or(|line| line == frame.line)
            && self.function.as_ref().is_none_or(|name| *name == frame.function)
    }
}
