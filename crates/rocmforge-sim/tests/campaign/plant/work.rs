//! Errors, launches and kernels.

use super::Expected;
use super::objects::{SIZE, buffer, fill, filled, launch, launch_wrong, made, read, streams};
use crate::program::{Writer, kernel};
use rocmforge_hip_sys::*;
use rocmforge_sim::ReportKind as K;
use rocmforge_sim::program::{Arg, Name, Op};

pub(super) fn out_of_memory(w: &mut Writer) -> Expected {
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

pub(super) fn endless(w: &mut Writer) -> Expected {
    let buffer = filled(w);
    let (stream, _) = streams(w);
    let site = launch_wrong(w, "endless", 1, 32, vec![Arg::Buffer(buffer, 0)], stream);
    Expected::Report(&[K::EndlessKernel, K::EndlessWait], vec![site])
}

pub(super) fn swallowed(w: &mut Writer) -> Expected {
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
pub(super) fn crash(w: &mut Writer, stream: Name) -> usize {
    let buffer = buffer(w);
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(SIZE as u32 / 4)];
    launch_wrong(w, "fill_past", 3, 32, args, stream)
}

pub(super) fn late_error(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    let site = crash(w, stream);
    w.push(Op::SyncStream { stream });
    let buffer = w.name();
    Expected::Dead(&[K::OutOfBounds], vec![site], w.push(Op::Malloc { buffer, size: SIZE }))
}

pub(super) fn after_crash(w: &mut Writer) -> Expected {
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

pub(super) fn wrong_card(w: &mut Writer) -> Expected {
    let (stream, _) = streams(w);
    w.push(Op::SetDevice { card: 1 });
    let (buffer, _) = made(w);
    w.push(Op::SetDevice { card: 0 });
    let args = vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(32)];
    Expected::Report(&[K::OutOfBounds], vec![launch(w, "fill", 1, 32, args, stream)])
}

pub(super) fn wrong_arguments(w: &mut Writer) -> Expected {
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

pub(super) fn geometry(w: &mut Writer) -> Expected {
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

pub(super) fn race_in_launch(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let site = if w.rng.chance(50) {
        launch_wrong(w, "rotate_racy", 1, 64, vec![Arg::Buffer(buffer, 0)], stream)
    } else {
        launch_wrong(w, "same_element", 2, 32, vec![Arg::Buffer(buffer, 0)], stream)
    };
    Expected::Report(&[K::LdsRace, K::UninitialisedLds, K::GlobalRace], vec![site])
}

pub(super) fn kernel_out_of_bounds(w: &mut Writer) -> Expected {
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

pub(super) fn divergent_barrier(w: &mut Writer) -> Expected {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    let site = launch_wrong(w, "half_barrier", 1, 64, vec![Arg::Buffer(buffer, 0)], stream);
    Expected::Report(&[K::BarrierDivergence], vec![site])
}

pub(super) fn wrong_code(w: &mut Writer) -> Expected {
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
