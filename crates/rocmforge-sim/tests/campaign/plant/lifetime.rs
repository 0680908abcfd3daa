//! Lifetimes, and memory nobody has written.

use super::Expected;
use super::objects::{SIZE, buffer, fill, filled, gap, made, read, streams, use_somehow};
use crate::program::Writer;
use rocmforge_hip_sys::*;
use rocmforge_sim::ReportKind as K;
use rocmforge_sim::program::{Arg, Op};

pub(super) fn double_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    w.push(Op::Free { buffer });
    Expected::Report(&[K::DoubleFree], vec![w.push(Op::Free { buffer })])
}

pub(super) fn interior_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    let at = 1 + w.rng.below(SIZE - 1);
    Expected::Report(&[K::InteriorFree], vec![w.push(Op::FreeInside { buffer, at })])
}

pub(super) fn use_after_free(w: &mut Writer) -> Expected {
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

pub(super) fn free_under_work(w: &mut Writer) -> Expected {
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
        let successor = self::buffer(w);
        fill(w, successor, other);
    }
    Expected::Report(&[K::UseAfterFree], vec![site])
}

pub(super) fn aba(w: &mut Writer) -> Expected {
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

pub(super) fn host_memory_under_copy(w: &mut Writer) -> Expected {
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

pub(super) fn leak(w: &mut Writer) -> Expected {
    Expected::Leak(made(w).1)
}

pub(super) fn leak_on_error(w: &mut Writer) -> Expected {
    let (_, first) = made(w);
    w.push(Op::FailNext {
        api: "hipMalloc",
        status: hipErrorOutOfMemory,
    });
    let buffer = w.name();
    w.push(Op::Malloc { buffer, size: SIZE });
    Expected::Leak(first)
}

pub(super) fn out_of_bounds(w: &mut Writer) -> Expected {
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

pub(super) fn pinned(w: &mut Writer) -> Expected {
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

pub(super) fn two_threads_free(w: &mut Writer) -> Expected {
    let (buffer, _) = made(w);
    w.push(Op::Thread { thread: 1 });
    w.push(Op::Free { buffer });
    w.push(Op::Thread { thread: 2 });
    let site = w.push(Op::Free { buffer });
    w.push(Op::Thread { thread: 0 });
    Expected::Report(&[K::DoubleFree], vec![site])
}

pub(super) fn uninitialised(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    Expected::Report(&[K::Uninitialised], vec![read(w, buffer, stream)])
}

pub(super) fn partly_initialised(w: &mut Writer) -> Expected {
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

pub(super) fn recycled(w: &mut Writer) -> Expected {
    let (first, _) = made(w);
    let (stream, _) = streams(w);
    fill(w, first, stream);
    w.push(Op::SyncStream { stream });
    w.push(Op::Free { buffer: first });
    uninitialised(w)
}

pub(super) fn stale_module(w: &mut Writer) -> Expected {
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
