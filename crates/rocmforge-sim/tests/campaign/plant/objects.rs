//! Parts of planted mistakes: streams, buffers and operations.

use crate::program::{FREE_STREAMS, Writer, kernel};
use rocmforge_sim::program::{Arg, Name, Op};

pub(super) const SIZE: usize = 256;

/// Two of the streams that order themselves with nothing.
pub(super) fn streams(w: &mut Writer) -> (Name, Name) {
    let a = w.rng.below(3);
    let b = (a + 1 + w.rng.below(2)) % 3;
    (FREE_STREAMS[a], FREE_STREAMS[b])
}

/// A buffer; it is freed at the end.
pub(super) fn buffer(w: &mut Writer) -> Name {
    let buffer = made(w).0;
    w.ending.push(Op::Free { buffer });
    buffer
}

/// A buffer that nobody frees, and the operation that makes it.
pub(super) fn made(w: &mut Writer) -> (Name, usize) {
    let buffer = w.name();
    let op = w.push(Op::Malloc { buffer, size: SIZE });
    (buffer, op)
}

pub(super) fn fill(w: &mut Writer, buffer: Name, stream: Name) -> usize {
    w.push(Op::Fill {
        buffer,
        at: 0,
        size: SIZE,
        stream,
    })
}

/// A written buffer, with the host behind the write.
pub(super) fn filled(w: &mut Writer) -> Name {
    let buffer = buffer(w);
    let (stream, _) = streams(w);
    fill(w, buffer, stream);
    w.push(Op::SyncStream { stream });
    buffer
}

pub(super) fn host(w: &mut Writer) -> Name {
    let host = w.name();
    w.push(Op::HostMalloc { host, size: SIZE });
    w.push(Op::HostWrite { host });
    w.ending.push(Op::HostFree { host });
    host
}

/// A launch of a kernel with a mistake.
pub(super) fn launch_wrong(
    w: &mut Writer,
    kernel: &'static str,
    grid: u32,
    block: u32,
    args: Vec<Arg>,
    stream: Name,
) -> usize {
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

pub(super) fn launch(w: &mut Writer, name: &str, grid: u32, block: u32, args: Vec<Arg>, stream: Name) -> usize {
    w.push(Op::Launch {
        function: kernel(name),
        grid: [grid, 1, 1],
        block: [block, 1, 1],
        args,
        stream,
    })
}

/// A few operations that have nothing to do with the mistake and order nothing.
pub(super) fn gap(w: &mut Writer) {
    for _ in 0..w.rng.below(4) {
        let (stream, _) = streams(w);
        let buffer = buffer(w);
        fill(w, buffer, stream);
    }
}

/// Uses a buffer on a stream in some way that writes it, or only reads it.
pub(super) fn use_somehow(w: &mut Writer, buffer: Name, stream: Name, write: bool) -> usize {
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

/// Reads a buffer so that what was never written shows.
pub(super) fn read(w: &mut Writer, buffer: Name, stream: Name) -> usize {
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
