//! Choice of kernels: which rows `cargo xtask kernels counters NAME` prints, compares and writes.

use crate::all_kernels;
use rocmforge_kernels::Kernels;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::sync::Arc;

/// Names of kernels or families, with a space between them.
const VARIABLE: &str = "ROCMFORGE_COUNTERS_KERNELS";

/// The kernels that are looked at.
pub(crate) struct Chosen(Option<Arc<BTreeSet<String>>>);

impl Chosen {
    /// All kernels.
    pub(crate) const ALL: Self = Self(None);

    /// Those that the environment names, or all.
    pub(crate) fn read() -> Result<Self, Box<dyn Error>> {
        match std::env::var(VARIABLE) {
            Ok(names) => Self::of(&names, &all_kernels()?),
            Err(_) => Ok(Self::ALL),
        }
    }

    fn of(names: &str, all: &[(String, String)]) -> Result<Self, Box<dyn Error>> {
        let mut chosen = BTreeSet::new();
        for name in names.split_whitespace() {
            let named = all.iter().filter(|(family, kernel)| family == name || kernel == name);
            let before = chosen.len();
            chosen.extend(named.map(|(_, kernel)| kernel.clone()));
            if chosen.len() == before {
                return Err(format!("{name} is the name of no kernel and of no family, or it is named twice").into());
            }
        }
        Ok(Self((!chosen.is_empty()).then(|| Arc::new(chosen))))
    }

    pub(crate) fn is_all(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn has(&self, kernel: &str) -> bool {
        self.0.as_ref().is_none_or(|chosen| chosen.contains(kernel))
    }

    /// Kernels of which these alone are enqueued.
    pub(crate) fn of_kernels(&self, kernels: &Kernels) -> Kernels {
        match self.0.clone() {
            Some(chosen) => kernels.only(move |launch| chosen.contains(launch.kernel)),
            None => kernels.clone(),
        }
    }

    /// Leaves the rows of the chosen kernels.
    pub(crate) fn retain<T>(&self, rows: &mut BTreeMap<String, T>) {
        rows.retain(|kernel, _| self.has(kernel));
    }

    /// The rows to write: the new ones, and beside those of chosen kernels what is committed.
    pub(crate) fn written<T>(&self, committed: BTreeMap<String, T>, new: BTreeMap<String, T>) -> BTreeMap<String, T> {
        let mut rows = match self.is_all() {
            true => BTreeMap::new(),
            false => committed,
        };
        rows.extend(new);
        rows
    }
}

#[test]
fn kernels_are_chosen_by_their_name_or_their_familys() {
    let pair = |family: &str, kernel: &str| (family.to_owned(), kernel.to_owned());
    let all = [
        pair("softmax", "softmax_rows"),
        pair("softmax", "softmax_block"),
        pair("add", "add"),
    ];
    let rows = |names: &str| {
        let chosen = Chosen::of(names, &all)?;
        let mut rows: BTreeMap<String, u32> = all.iter().map(|(_, kernel)| (kernel.clone(), 2)).collect();
        chosen.retain(&mut rows);
        let committed = BTreeMap::from([("add".to_owned(), 1), ("gone".to_owned(), 1)]);
        let written: Vec<u32> = chosen.written(committed, rows.clone()).into_values().collect();
        Ok::<_, Box<dyn Error>>((rows.into_keys().collect::<Vec<_>>(), written))
    };
    assert_eq!(
        rows("softmax").unwrap(),
        (
            vec!["softmax_block".to_owned(), "softmax_rows".to_owned()],
            vec![1, 1, 2, 2]
        )
    );
    assert_eq!(rows("add").unwrap(), (vec!["add".to_owned()], vec![2, 1]));
    // All: a row of a kernel that is not there any more goes.
    assert_eq!(rows("").unwrap().1, [2, 2, 2]);
    assert!(rows("add nobody").is_err());
}
