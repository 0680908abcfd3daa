//! Sites: what the accesses or calls of a report have in common with those of another one of the same mistake.

use crate::report::{Report, Side};
use rocmforge_amdgcn::Frame;

/// One side of a report: a place in the source of a kernel, whatever instructions the compiler made of it, or a call.
///
/// A loop that was unrolled is several instructions of one line, with the same functions inlined around it. Where line tables do not say where
/// an instruction comes from, it is a site by itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Site {
    /// A place in the source of a kernel: function, file, line and column of the innermost function and of those around it.
    Line(String, Vec<(String, String, u32, u32)>),
    /// An instruction of a kernel, by its address.
    Instruction(String, u64),
    /// A call, or an operation that a call has queued.
    Call(&'static str),
}

impl Site {
    fn of(api: &'static str, kernel: Option<&String>, pc: Option<u64>, frames: &[Frame]) -> Self {
        let (Some(kernel), Some(pc)) = (kernel, pc) else {
            return Self::Call(api);
        };
        if frames.is_empty() || frames.iter().any(|frame| frame.line == 0) {
            return Self::Instruction(kernel.clone(), pc);
        }
        let place = |frame: &Frame| (frame.function.clone(), frame.file.clone(), frame.line, frame.column);
        Self::Line(kernel.clone(), frames.iter().map(place).collect())
    }
}

impl Report {
    /// Where it happened.
    pub fn site(&self) -> Site {
        Site::of(self.api, self.kernel.as_ref(), self.pc, &self.frames)
    }

    /// Adds a report of the same mistake in other instructions.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        // The same two places the other way round are no further instructions of this one.
        if self.site() == other.site() && self.pc != other.pc {
            self.instructions += other.instructions;
        }
        self.stopped |= other.stopped;
    }

    /// Whether it is one mistake with another report: kind and both sides, whichever comes first.
    pub fn is_same_mistake(&self, other: &Self) -> bool {
        self.kind == other.kind && self.sites() == other.sites()
    }

    /// Where both sides are, in an order of their own.
    fn sites(&self) -> Vec<Site> {
        let mut sites = vec![self.site()];
        sites.extend(self.other.as_deref().map(Side::site));
        sites.sort();
        sites
    }
}

impl Side {
    /// Where it happened.
    pub fn site(&self) -> Site {
        Site::of(self.api, self.kernel.as_ref(), self.pc, &self.frames)
    }
}

/// One report of each mistake, in the order of the first ones.
pub(crate) fn grouped(reports: impl IntoIterator<Item = Report>) -> Vec<Report> {
    let mut groups: Vec<Report> = Vec::new();
    for report in reports {
        match groups.iter_mut().find(|group| group.is_same_mistake(&report)) {
            Some(group) => group.absorb(&report),
            None => groups.push(report),
        }
    }
    groups
}
