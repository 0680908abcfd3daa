//! One mistake of every fault class that a host program can make, each with what must be found and where.

mod lifetime;
mod objects;
mod order;
mod work;

use crate::program::Writer;
use lifetime::*;
use order::*;
use rocmforge_hip_sys::hipError_t;
use rocmforge_sim::{FreedMemory, Poison, ReportKind as K, SimConfig};
use work::*;

/// What must be found.
#[derive(Debug)]
pub(crate) enum Expected {
    /// The first report is of one of these kinds, and one of its sides is one of these operations.
    Report(&'static [K], Vec<usize>),
    /// This operation's memory is still there at the end.
    Leak(usize),
    /// The call of this operation says what is wrong.
    Status(usize, hipError_t),
    /// As [`Self::Report`]; and from this operation on calls fail.
    Dead(&'static [K], Vec<usize>, usize),
}

/// A fault class: its number, what it is, and how it is planted.
pub(crate) struct Class {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    plant: fn(&mut Writer) -> Expected,
    machine: fn(&mut SimConfig),
}

impl Class {
    pub(crate) fn plant(&self, writer: &mut Writer) -> Expected {
        (self.plant)(writer)
    }

    pub(crate) fn prepare(&self, config: &mut SimConfig) {
        config.separate_threads = true;
        (self.machine)(config);
    }
}

fn any(_: &mut SimConfig) {}

fn strict(config: &mut SimConfig) {
    config.strict = true;
}

const fn class(id: &'static str, what: &'static str, plant: fn(&mut Writer) -> Expected) -> Class {
    let machine = any;
    Class {
        id,
        what,
        plant,
        machine,
    }
}

const fn on(class: Class, machine: fn(&mut SimConfig)) -> Class {
    Class { machine, ..class }
}

/// All that are planted.
pub(crate) const CLASSES: &[Class] = &[
    class("FC01", "double free", double_free),
    class("FC02", "free of an interior pointer", interior_free),
    class("FC03", "use after free", use_after_free),
    on(class("FC04", "free under queued work", free_under_work), strict),
    on(
        class("FC05", "stale pointer frees a stranger's memory", aba),
        |config| config.freed = FreedMemory::ReusedAtOnce,
    ),
    on(
        class(
            "FC06",
            "host memory goes or changes under a copy",
            host_memory_under_copy,
        ),
        strict,
    ),
    class("FC07", "leak", leak),
    class("FC08", "leak on an error path", leak_on_error),
    class("FC09", "copy or fill out of bounds", out_of_bounds),
    class("FC10", "pinned memory leaked, freed or registered twice", pinned),
    class("FC11", "two threads free the same memory", two_threads_free),
    class("FC12", "read of memory never written", uninitialised),
    class("FC13", "partial initialisation", partly_initialised),
    on(class("FC14", "contents of an earlier owner", recycled), |config| {
        (config.poison, config.freed) = (Poison::Stale, FreedMemory::ReusedAtOnce)
    }),
    on(class("FC15", "stale module or function", stale_module), strict),
    class("FC17", "host reads before the copy has run", early_read),
    class("FC18", "null stream against a non-blocking stream", null_stream),
    class("FC19", "two streams without an event", no_event),
    on(class("FC20", "accidental synchrony", accident), strict),
    class("FC21", "fill on one stream, first use on another", fill_elsewhere),
    class(
        "FC22",
        "event recorded too early, elsewhere, again or never",
        wrong_event,
    ),
    class("FC23", "destroyed stream or event", destroyed),
    class("FC24", "HIP call in a host function", hip_in_host_function),
    class("FC25", "launch on another stream than its neighbours", other_stream),
    class("FC27", "out of memory, ignored", out_of_memory),
    class("FC45", "endless kernel", endless),
    class("FC57", "error swallowed", swallowed),
    class("FC58", "error surfaces in an unrelated call", late_error),
    class("FC59", "work goes on after a crash", after_crash),
    on(class("FC60", "wrong card", wrong_card), |config| {
        config.cards.push(rocmforge_sim::CardConfig {
            pci: "0000:04:00.0".to_owned(),
            ..config.cards[0].clone()
        });
    }),
    class("FC61", "wrong kernel arguments", wrong_arguments),
    class("FC62", "geometry that wraps", geometry),
    class("FC63", "race in LDS or inside a launch", race_in_launch),
    class("FC64", "kernel out of bounds", kernel_out_of_bounds),
    class("FC65", "divergent barrier", divergent_barrier),
    class("FC68", "code object for another card, missing kernel", wrong_code),
];
