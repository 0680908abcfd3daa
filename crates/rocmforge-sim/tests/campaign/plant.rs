//! One mistake of every fault class that a host program can make, each with what must be found and where.

use crate::program::{FREE_STREAMS, Writer, kernel};
use rocmforge_hip_sys::*;
use rocmforge_sim::program::{Arg, Name, Op, Task};
use rocmforge_sim::{Poison, ReportKind as K, SimConfig};

/// What must be found.
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
    class("FC05", "stale pointer frees a stranger's memory", aba),
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
        config.poison = Poison::Stale
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

const SIZE: usize = 256;

/// Two of the streams that order themselves with nothing.
fn streams(w: &mut Writer) -> (Name, Name) {
    let a = w.rng.below(3);
    let b = (a + 1 + w.rng.below(2)) % 3;
    (FREE_STREAMS[a], FREE_STREAMS[b])
}

/// A buffer; it is freed at the end.
fn buffer(w: &mut Writer) -> Name {
    let buffer = made(w).0;
    w.ending.push(Op::Free { buffer });
    buffer
}

/// A buffer that nobody frees, and the operation that makes it.
fn made(w: &mut Writer) -> (Name, usize) {
    let buffer = w.name();
    let op = w.push(Op::Malloc { buffer, size: SIZE });
    (buffer, op)
}

fn fill(w: &mut Writer, buffer: Name, stream: Name) -> usize {
    w.push(Op::Fill {
        buffer,
        at: 0,
        size: SIZE,
        stream,
    })
}

/// A written buffer, with the host behind the write.
fn filled(w: &mut Writer) -> Name {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    fill(w, buffer, stream);
    w.push(Op::SyncStream { stream });
    buffer
}

fn host(w: &mut Writer) -> Name {
    let host = w.name();
    w.push(Op::HostMalloc { host, size: SIZE });
    w.push(Op::HostWrite { host });
    w.ending.push(Op::HostFree { host });
    host
}

/// A launch of a kernel with a mistake.
fn launch_wrong(w: &mut Writer, kernel: &'static str, grid: u32, block: u32, args: Vec<Arg>, stream: Name) -> usize {
    let (module, function) = (w.name(), w.name());
    w.push(Op::Load { module, image: 1 });
    w.ending.push(Op::Unload { module });
    w.push(Op::Function {
        function,
        module,
        kernel,
    });
    w.push(Op::Launch {
        function,
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        args,
        stream,
    })
}

fn launch(w: &mut Writer, name: &str, grid: u32, block: u32, args: Vec<Arg>, stream: Name) -> usize {
    w.push(Op::Launch {
        function: kernel(name),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        args,
        stream,
    })
}

/// A few operations that have nothing to do with the mistake and order nothing.
fn gap(w: &mut Writer) {
    for _ in 0..w.rng.below(4) {
        let (stream, _) = streams(w);
        let buffer = buffer(w);
        fill(w, buffer, stream);
    }
}

/// Uses a buffer on a stream in some way that writes it, or only reads it.
fn use_somehow(w: &mut Writer, buffer: Name, stream: Name, write: bool) -> usize {
    let n = Arg::U32(32);
    match (write, w.rng.below(3)) {
        (true, 0) => launch(w, "fill", 1, 32, vec![Arg::Buffer(buffer, 0), Arg::U32(5), n], stream),
        (true, _) => fill(w, buffer, stream),
        (false, 0) => {
            let out = self::buffer(w);
            let args = vec![Arg::Buffer(buffer, 0), Arg::Buffer(buffer, 0), Arg::Buffer(out, 0), n];
            launch(w, "add", 1, 32, args, stream)
        }
        (false, _) => {
            let to = self::buffer(w);
            w.push(Op::Copy {
                from: buffer,
                to,
                size: SIZE,
                stream,
            })
        }
    }
}

fn double_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    w.push(Op::Free { buffer });
    Expected::Report(&[K::DoubleFree], vec![w.push(Op::Free { buffer })])
}

fn interior_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    let at = 1 + w.rng.below(SIZE - 1);
    Expected::Report(&[K::InteriorFree], vec![w.push(Op::FreeInside { buffer, at })])
}

fn use_after_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    let (stream, _) = streams(w);
    fill(w, buffer, stream);
    w.push(Op::SyncStream { stream });
    w.push(Op::Free { buffer });
    let write = w.rng.chance(50);
    let site = if write {
        use_somehow(w, buffer, stream, true)
    } else {
        let out = w.name();
        w.push(Op::HostVec { host: out, size: SIZE });
        w.push(Op::DownloadSync {
            buffer,
            host: out,
            at: 0,
            size: SIZE,
        })
    };
    Expected::Report(&[K::UseAfterFree], vec![site])
}

fn free_under_work(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    let (stream, other) = streams(w);
    let site = use_somehow(w, buffer, stream, true);
    gap(w);
    let free = if w.rng.chance(70) {
        Op::Free { buffer }
    } else {
        Op::FreeAsync { buffer, stream: other }
    };
    w.push(free);
    if w.rng.chance(50) {
        // Somebody else gets the address while the work is still queued.
        let heir = self::buffer(w);
        fill(w, heir, other);
    }
    Expected::Report(&[K::UseAfterFree], vec![site])
}

fn aba(w: &mut Writer) -> Expected {
    let (first, _) = made(w);
    let (stream, _) = streams(w);
    w.push(Op::Free { buffer: first });
    let (second, _) = made(w);
    fill(w, second, stream);
    w.push(Op::SyncStream { stream });
    w.push(Op::Free { buffer: first });
    // Its owner goes on: what happened to it is in the report.
    Expected::Report(&[K::UseAfterFree], vec![fill(w, second, stream)])
}

fn host_memory_under_copy(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let host = w.name();
    w.push(Op::HostMalloc { host, size: SIZE });
    w.push(Op::HostWrite { host });
    let copy = w.push(Op::Upload {
        host,
        buffer,
        at: 0,
        size: SIZE,
        stream,
    });
    gap(w);
    if w.rng.chance(50) {
        w.push(Op::HostFree { host });
        Expected::Report(&[K::UseAfterFree], vec![copy])
    } else {
        w.ending.push(Op::HostFree { host });
        w.push(Op::HostWrite { host });
        Expected::Report(&[K::Race], vec![copy])
    }
}

fn leak(w: &mut Writer) -> Expected {
    Expected::Leak(made(w).1)
}

fn leak_on_error(w: &mut Writer) -> Expected {
    let (_, first) = made(w);
    w.push(Op::FailNext {
        api: "hipMalloc",
        status: hipErrorOutOfMemory,
    });
    let buffer = w.name();
    w.push(Op::Malloc { buffer, size: SIZE });
    Expected::Leak(first)
}

fn out_of_bounds(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (stream, _) = streams(w);
    let (at, size) = match w.rng.below(4) {
        0 => (0, SIZE + 1),
        1 => (SIZE - 1, 2),
        2 => (8, usize::MAX - 7),
        _ => (w.rng.below(SIZE), SIZE + 1),
    };
    if size > 2 * SIZE || w.rng.chance(50) {
        let site = w.push(Op::Fill {
            buffer,
            at,
            size,
            stream,
        });
        return Expected::Report(&[K::OutOfBounds], vec![site]);
    }
    let host = w.name();
    w.push(Op::HostVec { host, size: 4 * SIZE });
    let site = w.push(Op::DownloadSync { buffer, host, at, size });
    Expected::Report(&[K::OutOfBounds], vec![site])
}

fn pinned(w: &mut Writer) -> Expected {
    let host = w.name();
    match w.rng.below(4) {
        0 => Expected::Leak(w.push(Op::HostMalloc { host, size: SIZE })),
        1 => {
            w.push(Op::HostMalloc { host, size: SIZE });
            w.push(Op::HostFree { host });
            Expected::Report(&[K::InvalidFree], vec![w.push(Op::HostFree { host })])
        }
        2 => {
            w.push(Op::HostVec { host, size: SIZE });
            w.push(Op::Register { host });
            w.ending.push(Op::Unregister { host, at: 0 });
            Expected::Status(w.push(Op::Register { host }), hipErrorHostMemoryAlreadyRegistered)
        }
        _ => {
            w.push(Op::HostVec { host, size: SIZE });
            w.push(Op::Register { host });
            w.ending.push(Op::Unregister { host, at: 0 });
            Expected::Status(w.push(Op::Unregister { host, at: 8 }), hipErrorHostMemoryNotRegistered)
        }
    }
}

fn two_threads_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    w.push(Op::Thread { thread: 1 });
    w.push(Op::Free { buffer });
    w.push(Op::Thread { thread: 2 });
    let site = w.push(Op::Free { buffer });
    w.push(Op::Thread { thread: 0 });
    Expected::Report(&[K::DoubleFree], vec![site])
}

fn uninitialised(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    Expected::Report(&[K::Uninitialised], vec![read(w, buffer, stream)])
}

/// Reads a buffer so that what was never written shows.
fn read(w: &mut Writer, buffer: Name, stream: Name) -> usize {
    match w.rng.below(3) {
        0 => {
            let out = self::buffer(w);
            let args = vec![
                Arg::Buffer(buffer, 0),
                Arg::Buffer(buffer, 0),
                Arg::Buffer(out, 0),
                Arg::U32(64),
            ];
            launch(w, "add", 2, 32, args, stream)
        }
        1 => {
            let host = host(w);
            w.push(Op::Download {
                buffer,
                host,
                at: 0,
                size: SIZE,
                stream,
            })
        }
        _ => {
            let host = w.name();
            w.push(Op::HostVec { host, size: SIZE });
            w.push(Op::DownloadSync {
                buffer,
                host,
                at: 0,
                size: SIZE,
            })
        }
    }
}

fn partly_initialised(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let size = 1 + w.rng.below(SIZE - 1);
    w.push(Op::Fill {
        buffer,
        at: 0,
        size,
        stream,
    });
    w.push(Op::SyncStream { stream });
    Expected::Report(&[K::Uninitialised], vec![read(w, buffer, stream)])
}

fn recycled(w: &mut Writer) -> Expected {
    let (first, _) = made(w);
    let (stream, _) = streams(w);
    fill(w, first, stream);
    w.push(Op::SyncStream { stream });
    w.push(Op::Free { buffer: first });
    uninitialised(w)
}

fn stale_module(w: &mut Writer) -> Expected {
    let (module, function) = (w.name(), w.name());
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    w.push(Op::Load { module, image: 0 });
    w.push(Op::Function {
        function,
        module,
        kernel: "fill",
    });
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(32)];
    let run = Op::Launch {
        function,
        grid: [1; 3],
        block: [32, 1, 1],
        args,
        stream,
    };
    if w.rng.chance(50) {
        w.push(Op::Unload { module });
        Expected::Report(&[K::StaleHandle], vec![w.push(run)])
    } else {
        let site = w.push(run);
        gap(w);
        w.push(Op::Unload { module });
        Expected::Report(&[K::UseAfterFree], vec![site])
    }
}

fn early_read(w: &mut Writer) -> Expected {
    let (buffer, host) = (filled(w), host(w));
    let (stream, _) = streams(w);
    let copy = w.push(Op::Download {
        buffer,
        host,
        at: 0,
        size: SIZE,
        stream,
    });
    gap(w);
    w.push(Op::HostRead { host });
    Expected::Report(&[K::Race], vec![copy])
}

fn null_stream(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (stream, _) = streams(w);
    let first = use_somehow(w, buffer, stream, true);
    gap(w);
    let host = w.name();
    w.push(Op::HostVec { host, size: SIZE });
    let (at, size) = (0, SIZE);
    let second = if w.rng.chance(50) {
        w.push(Op::DownloadSync { buffer, host, at, size })
    } else {
        w.push(Op::HostWrite { host });
        w.push(Op::UploadSync { host, buffer, at, size })
    };
    Expected::Report(&[K::Race], vec![first, second])
}

fn no_event(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (a, b) = streams(w);
    let (first, second) = [(true, true), (true, false), (false, true)][w.rng.below(3)];
    let first = use_somehow(w, buffer, a, first);
    gap(w);
    let second = use_somehow(w, buffer, b, second);
    Expected::Report(&[K::Race], vec![first, second])
}

fn accident(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (a, b) = streams(w);
    if w.rng.chance(50) {
        // A free of something else waits for the card today.
        let (other, _) = made(w);
        let first = use_somehow(w, buffer, a, true);
        w.push(Op::Free { buffer: other });
        let second = use_somehow(w, buffer, b, true);
        Expected::Report(&[K::Race], vec![first, second])
    } else {
        // A copy to pageable memory waits today.
        let host = w.name();
        w.push(Op::HostVec { host, size: SIZE });
        let copy = w.push(Op::Download {
            buffer,
            host,
            at: 0,
            size: SIZE,
            stream: a,
        });
        w.push(Op::HostRead { host });
        Expected::Report(&[K::Race], vec![copy])
    }
}

fn fill_elsewhere(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let first = w.push(Op::FillSync {
        buffer,
        at: 0,
        size: SIZE,
    });
    gap(w);
    let second = use_somehow(w, buffer, stream, true);
    Expected::Report(&[K::Race], vec![first, second])
}

fn wrong_event(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (a, b) = streams(w);
    let event = w.name();
    w.push(Op::Event { event });
    w.ending.push(Op::DestroyEvent { event });
    let record = |stream| Op::Record { event, stream };
    let kind = w.rng.below(4);
    if kind == 0 {
        w.push(record(a));
    }
    let first = use_somehow(w, buffer, a, true);
    match kind {
        1 => {
            w.push(record(b));
        }
        2 => {
            w.push(record(a));
            w.push(record(b));
        }
        _ => {}
    }
    w.push(Op::Wait { stream: b, event });
    let second = use_somehow(w, buffer, b, true);
    Expected::Report(&[K::Race], vec![first, second])
}

fn destroyed(w: &mut Writer) -> Expected {
    let site = if w.rng.chance(50) {
        let (stream, buffer) = (w.name(), buffer(w));
        w.push(Op::Stream {
            stream,
            blocking: false,
        });
        w.push(Op::DestroyStream { stream });
        match w.rng.below(3) {
            0 => w.push(Op::SyncStream { stream }),
            1 => w.push(Op::DestroyStream { stream }),
            _ => use_somehow(w, buffer, stream, true),
        }
    } else {
        let event = w.name();
        let (stream, _) = streams(w);
        w.push(Op::Event { event });
        w.push(Op::DestroyEvent { event });
        match w.rng.below(3) {
            0 => w.push(Op::Record { event, stream }),
            1 => w.push(Op::Wait { stream, event }),
            _ => w.push(Op::SyncEvent { event }),
        }
    };
    Expected::Report(&[K::StaleHandle], vec![site])
}

fn hip_in_host_function(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let task = Task::CallsHip;
    w.push(Op::HostFunction { stream, task });
    // The call in question is the host function's own.
    Expected::Report(&[K::InvalidCall], Vec::new())
}

fn other_stream(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (a, b) = streams(w);
    let first = fill(w, buffer, a);
    let second = launch(
        w,
        "fill",
        1,
        64,
        vec![Arg::Buffer(buffer, 0), Arg::U32(3), Arg::U32(64)],
        b,
    );
    let to = self::buffer(w);
    let third = w.push(Op::Copy {
        from: buffer,
        to,
        size: SIZE,
        stream: a,
    });
    Expected::Report(&[K::Race], vec![first, second, third])
}

fn out_of_memory(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    w.push(Op::FailNext {
        api: "hipMalloc",
        status: hipErrorOutOfMemory,
    });
    let buffer = w.name();
    w.push(Op::Malloc { buffer, size: SIZE });
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(32)];
    Expected::Report(&[K::OutOfBounds], vec![launch(w, "fill", 1, 32, args, stream)])
}

fn endless(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (stream, _) = streams(w);
    let site = launch_wrong(w, "endless", 1, 32, vec![Arg::Buffer(buffer, 0)], stream);
    Expected::Report(&[K::EndlessKernel, K::EndlessWait], vec![site])
}

fn swallowed(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    w.push(Op::FailNext {
        api: "hipMemsetAsync",
        status: hipErrorUnknown,
    });
    fill(w, buffer, stream);
    Expected::Report(&[K::Uninitialised], vec![read(w, buffer, stream)])
}

/// A launch that ends with an illegal address.
fn crash(w: &mut Writer, stream: Name) -> usize {
    let buffer = buffer(w);
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(SIZE as u32 / 4)];
    launch_wrong(w, "fill_past", 3, 32, args, stream)
}

fn late_error(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let site = crash(w, stream);
    w.push(Op::SyncStream { stream });
    let buffer = w.name();
    Expected::Dead(&[K::OutOfBounds], vec![site], w.push(Op::Malloc { buffer, size: SIZE }))
}

fn after_crash(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let buffer = buffer(w);
    let site = if w.rng.chance(50) {
        crash(w, stream)
    } else {
        launch_wrong(w, "gives_up", 1, 32, vec![Arg::Buffer(buffer, 0)], stream)
    };
    let from = w.push(Op::SyncStream { stream });
    fill(w, buffer, stream);
    Expected::Dead(&[K::OutOfBounds, K::KernelAbort], vec![site], from)
}

fn wrong_card(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    w.push(Op::SetDevice { card: 1 });
    let (buffer, _) = made(w);
    w.push(Op::SetDevice { card: 0 });
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(32)];
    Expected::Report(&[K::OutOfBounds], vec![launch(w, "fill", 1, 32, args, stream)])
}

fn wrong_arguments(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    match w.rng.below(3) {
        0 => {
            let function = kernel("fill");
            let site = w.push(Op::LaunchShort {
                function,
                bytes: 8,
                stream,
            });
            Expected::Report(&[K::BadLaunch], vec![site])
        }
        1 => {
            // A host pointer where a device pointer belongs.
            let host = w.name();
            w.push(Op::HostVec { host, size: SIZE });
            let args = vec![Arg::Host(host), Arg::U32(1), Arg::U32(32)];
            Expected::Report(&[K::OutOfBounds], vec![launch(w, "fill", 1, 32, args, stream)])
        }
        _ => {
            // Numbers where a pointer belongs.
            let args = vec![Arg::U32(64), Arg::U32(1), Arg::U32(32)];
            Expected::Report(&[K::OutOfBounds], vec![launch(w, "fill", 1, 32, args, stream)])
        }
    }
}

fn geometry(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(32)];
    let site = w.push(Op::Launch {
        function: kernel("fill"),
        grid: [1; 3],
        block: [1 << 16, 1 << 16, 1],
        args,
        stream,
    });
    Expected::Report(&[K::InvalidCall], vec![site])
}

fn race_in_launch(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let site = if w.rng.chance(50) {
        launch_wrong(w, "rotate_racy", 1, 64, vec![Arg::Buffer(buffer, 0)], stream)
    } else {
        launch_wrong(w, "same_element", 2, 32, vec![Arg::Buffer(buffer, 0)], stream)
    };
    Expected::Report(
        &[K::LdsRace, K::UninitialisedLds, K::GlobalRace, K::KernelAbort],
        vec![site],
    )
}

fn kernel_out_of_bounds(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let (buffer, other) = (filled(w), filled(w));
    let site = match w.rng.below(3) {
        0 => crash(w, stream),
        1 => {
            let args = vec![
                Arg::Buffer(other, 0),
                Arg::Buffer(other, 0),
                Arg::Buffer(buffer, 0),
                Arg::U32(SIZE as u32 / 4),
            ];
            launch_wrong(w, "add_past", 2, 32, args, stream)
        }
        _ => launch_wrong(w, "lds_past", 1, 32, vec![Arg::Buffer(buffer, 0), Arg::U32(16)], stream),
    };
    Expected::Report(&[K::OutOfBounds, K::LdsOutOfBounds], vec![site])
}

fn divergent_barrier(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let site = launch_wrong(w, "half_barrier", 1, 64, vec![Arg::Buffer(buffer, 0)], stream);
    Expected::Report(&[K::BarrierDivergence, K::KernelAbort], vec![site])
}

fn wrong_code(w: &mut Writer) -> Expected {
    let (module, function) = (w.name(), w.name());
    if w.rng.chance(50) {
        Expected::Status(w.push(Op::Load { module, image: 2 }), hipErrorNoBinaryForGpu)
    } else {
        w.push(Op::Load { module, image: 0 });
        w.ending.push(Op::Unload { module });
        let kernel = "no_such_kernel";
        let site = w.push(Op::Function {
            function,
            module,
            kernel,
        });
        Expected::Status(site, hipErrorNotFound)
    }
}
