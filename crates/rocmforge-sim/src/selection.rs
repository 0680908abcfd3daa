//! Selection of launches: which of them are checked, by the names of their kernels and by their number.

use std::collections::BTreeSet;

/// Kernels that a selector remembers by name.
const REMEMBERED: usize = 16;

/// Which kernels are checked, as compute-sanitizer's `--kernel-name` says it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum NameFilter {
    /// The kernel of this name.
    Exact(String),
    /// Kernels with this in their name.
    Substring(String),
}

impl NameFilter {
    /// Whether the filter fits a kernel.
    pub fn fits(&self, kernel: &str) -> bool {
        match self {
            Self::Exact(name) => kernel == name,
            Self::Substring(part) => kernel.contains(part.as_str()),
        }
    }
}

/// Which launches are checked. The others run, and what is found in them is counted only.
///
/// The others run under the same checks: what they write counts as written, and a race between one of them and a launch that is checked is
/// reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields, default))]
pub struct LaunchSelection {
    /// Kernels: those that one of these fits; all, if there is none.
    pub names: Vec<NameFilter>,
    /// How many of their launches are passed over first.
    pub skip: u64,
    /// How many are checked then; 0: all.
    pub count: u64,
}

impl LaunchSelection {
    /// Whether every launch is checked.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether one of the filters fits a kernel.
    pub fn fits(&self, kernel: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name.fits(kernel))
    }
}

/// A selection at work: takes launches in their order.
#[derive(Clone, Debug, Default)]
pub struct LaunchSelector {
    selection: LaunchSelection,
    fitting: u64,
    /// Kernels that no name has fitted.
    others: BTreeSet<String>,
}

impl LaunchSelector {
    /// A selector that has seen no launch.
    pub fn new(selection: LaunchSelection) -> Self {
        Self {
            selection,
            ..Self::default()
        }
    }

    /// Takes the next launch, one of `kernel`. Whether it is checked.
    pub fn take(&mut self, kernel: &str) -> bool {
        let LaunchSelection { skip, count, .. } = self.selection;
        if !self.selection.fits(kernel) {
            if self.others.len() < REMEMBERED && !self.others.contains(kernel) {
                self.others.insert(kernel.to_owned());
            }
            return false;
        }
        let place = self.fitting;
        self.fitting += 1;
        place >= skip && (count == 0 || place - skip < count)
    }

    /// How many launches the names have fitted so far.
    pub fn fitting(&self) -> u64 {
        self.fitting
    }

    /// Names of kernels that were launched and that no name has fitted, 16 at most.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(names: &[NameFilter], skip: u64, count: u64) -> (Vec<bool>, u64) {
        let names = names.to_vec();
        let mut selector = LaunchSelector::new(LaunchSelection { names, skip, count });
        let checked = ["copy", "fill", "copy", "copy_all"].map(|kernel| selector.take(kernel));
        (checked.to_vec(), selector.fitting())
    }

    #[test]
    fn names_choose_and_numbers_count_among_those_that_fit() {
        let exact = [NameFilter::Exact("copy".to_owned())];
        let part = [NameFilter::Substring("copy".to_owned())];
        assert_eq!(taken(&[], 0, 0), (vec![true; 4], 4));
        assert_eq!(taken(&exact, 0, 0), (vec![true, false, true, false], 2));
        assert_eq!(taken(&exact, 1, 0), (vec![false, false, true, false], 2));
        assert_eq!(taken(&part, 1, 1), (vec![false, false, true, false], 3));
        assert_eq!(taken(&part, 0, 2), (vec![true, false, true, false], 3));
        assert_eq!(taken(&[], 3, u64::MAX), (vec![false, false, false, true], 4));
    }
}
