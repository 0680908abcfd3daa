//! Order between streams and the host.

use super::Expected;
use super::objects::{SIZE, buffer, fill, filled, gap, host, launch, made, streams, use_somehow};
use crate::program::Writer;
use rocmforge_sim::ReportKind as K;
use rocmforge_sim::program::{Arg, Op, Task};

pub(super) fn early_read(w: &mut Writer) -> Expected {
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

pub(super) fn null_stream(w: &mut Writer) -> Expected {
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

pub(super) fn no_event(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (a, b) = streams(w);
    let (first, second) = [(true, true), (true, false), (false, true)][w.rng.below(3)];
    let first = use_somehow(w, buffer, a, first);
    gap(w);
    let second = use_somehow(w, buffer, b, second);
    Expected::Report(&[K::Race], vec![first, second])
}

pub(super) fn accident(w: &mut Writer) -> Expected {
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

pub(super) fn fill_elsewhere(w: &mut Writer) -> Expected {
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

pub(super) fn wrong_event(w: &mut Writer) -> Expected {
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

pub(super) fn destroyed(w: &mut Writer) -> Expected {
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

pub(super) fn hip_in_host_function(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let task = Task::CallsHip;
    w.push(Op::HostFunction { stream, task });
    // The call in question is the host function's own.
    Expected::Report(&[K::InvalidCall], Vec::new())
}

pub(super) fn other_stream(w: &mut Writer) -> Expected {
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
