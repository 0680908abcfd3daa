//! Early kernels: their code waits for the launches before, so they may begin while these end (programmatic dependent launch, from compute
//! capability 9.0 on). In captured graphs they are launched so. Elsewhere the host's time for a launch is longer than what that saves.

use crate::cuda::Handle;
use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

/// What a kernel that waits for the launches before has in its PTX.
const WAIT: &str = "griddepcontrol.wait";

/// The early kernels of all modules. Handles are numbers here, never followed.
#[derive(Default)]
pub(crate) struct Early(RwLock<Known>);

#[derive(Default)]
struct Known {
    /// Names of such kernels, by module; a module without any is not there.
    modules: HashMap<usize, HashSet<String>>,
    /// The module of each such function that was asked for.
    functions: HashMap<usize, usize>,
}

impl Early {
    /// A module has been loaded from this text.
    pub(crate) fn load(&self, module: Handle, ptx: &str) {
        let names = waiting(ptx);
        if !names.is_empty() {
            self.write(|known| known.modules.insert(module.addr(), names));
        }
    }

    pub(crate) fn unload(&self, module: Handle) {
        self.write(|known| {
            known.modules.remove(&module.addr());
            known.functions.retain(|_, of| *of != module.addr());
        });
    }

    /// A function of a module has been found by this name.
    pub(crate) fn found(&self, function: Handle, module: Handle, name: &str) {
        let is_early = |known: &Known| {
            known
                .modules
                .get(&module.addr())
                .is_some_and(|names| names.contains(name))
        };
        if self.read(is_early) {
            self.write(|known| known.functions.insert(function.addr(), module.addr()));
        }
    }

    pub(crate) fn has(&self, function: Handle) -> bool {
        self.read(|known| known.functions.contains_key(&function.addr()))
    }

    fn read<T>(&self, read: impl FnOnce(&Known) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Known) -> T) -> T {
        write(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Names of the kernels of a PTX text that wait.
fn waiting(ptx: &str) -> HashSet<String> {
    // The text before the first `.entry` has no kernel.
    let kernels = ptx.split(".entry ").skip(1).filter(|kernel| kernel.contains(WAIT));
    let ends = |c: char| c == '(' || c == '{' || c.is_whitespace();
    kernels
        .filter_map(|kernel| Some(kernel.trim_start().split(ends).next()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_that_wait_are_found() {
        let text = ".version 8.0\n.visible .entry a(\n.param .u64 p\n)\n{ ret; }\n\
                    .visible .entry b(.param .u64 p) .maxntid 512\n{ griddepcontrol.wait; ret; }\n.entry c\n{ griddepcontrol.wait; }";
        assert_eq!(waiting(text), ["b", "c"].map(str::to_owned).into());
        assert!(waiting("griddepcontrol.wait").is_empty());
    }

    #[test]
    fn what_a_module_had_goes_with_it() {
        let [a, b, function] = [1, 2, 3].map(std::ptr::without_provenance_mut);
        let early = Early::default();
        early.load(a, ".entry x { griddepcontrol.wait; }");
        early.load(b, ".entry x { ret; }");
        early.found(function, b, "x");
        assert!(!early.has(function));
        early.found(function, a, "x");
        assert!(early.has(function));
        early.unload(b);
        assert!(early.has(function));
        early.unload(a);
        assert!(!early.has(function));
        early.found(function, a, "x");
        assert!(!early.has(function), "another module may have the address");
    }
}
