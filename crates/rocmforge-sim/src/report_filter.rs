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
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub kind: Option<ReportKind>,
    /// The tool.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub tool: Option<Tool>,
    /// The kernel of either side.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub kernel: Option<String>,
    /// A part of that kernel's name.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub kernel_substring: Option<String>,
    /// The end of the path of a source file, from a component on.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub file: Option<String>,
    /// The line in it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub line: Option<u32>,
    /// A function: the kernel, or one that is inlined or called.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
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
        let named = |name: &String| kernels().any(|kernel| kernel == name);
        let contains = |part: &String| kernels().any(|kernel| kernel.contains(part));
        let others = other.into_iter().flat_map(|other| &other.frames);
        let frames = report.frames.iter().chain(others);
        self.kind.is_none_or(|kind| kind == report.kind)
            && self.tool.is_none_or(|tool| tool == report.tool())
            && self.kernel.as_ref().is_none_or(named)
            && self.kernel_substring.as_ref().is_none_or(contains)
            && self.fits_one_of(frames)
    }

    fn fits_one_of<'a>(&self, mut frames: impl Iterator<Item = &'a Frame>) -> bool {
        let anywhere = self.file.is_none() && self.line.is_none() && self.function.is_none();
        anywhere || frames.any(|frame| self.fits_frame(frame))
    }

    fn fits_frame(&self, frame: &Frame) -> bool {
        // Whole components: `add.hip` is not the end of `my_add.hip`.
        let ends = |file: &String| Path::new(&frame.file).ends_with(file);
        self.file.as_ref().is_none_or(ends)
            && self.line.is_none_or(|line| line == frame.line)
            && self.function.as_ref().is_none_or(|name| *name == frame.function)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_given_property_of_a_place_counts() {
        let frame = Frame {
            function: "add".to_owned(),
            file: "src/add.hip".to_owned(),
            line: 3,
            column: 1,
        };
        let fits = |line: Option<u32>, file: Option<&str>| {
            let filter = ReportFilter {
                line,
                file: file.map(str::to_owned),
                ..ReportFilter::default()
            };
            (
                filter.fits_one_of([&frame].into_iter()),
                filter.fits_one_of([].into_iter()),
            )
        };
        assert_eq!(fits(None, None), (true, true));
        assert_eq!(fits(Some(3), None), (true, false));
        assert_eq!(fits(Some(4), None), (false, false));
        assert_eq!(fits(Some(3), Some("add.hip")), (true, false));
        assert_eq!(fits(Some(4), Some("add.hip")), (false, false));
        assert_eq!(fits(Some(3), Some("dd.hip")), (false, false));
    }
}
