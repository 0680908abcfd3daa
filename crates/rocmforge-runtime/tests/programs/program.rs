//! Programs as data: what they may do, and how they are made up.

use rocmforge_testkit::data::{Rng, rng};

/// The name of an object of its kind. An operation on a name that has no object is skipped, so any part of a program is a
/// program.
pub(crate) type Name = usize;

/// Objects of each kind, at most.
pub(crate) const STREAMS: usize = 4;
pub(crate) const BUFFERS: usize = 6;
pub(crate) const EVENTS: usize = 3;
pub(crate) const PENDING: usize = 3;
pub(crate) const GRAPHS: usize = 3;
pub(crate) const PINNED: usize = 2;
/// Elements of the longest buffer.
pub(crate) const LONGEST: usize = 48;

/// One operation, on buffers of `f32`.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // a test
pub(crate) enum Op {
    Stream(Name),
    DropStream(Name),
    /// Zeroed, or a copy of a slice.
    Alloc {
        buffer: Name,
        len: usize,
        zeroed: bool,
        stream: Name,
    },
    View {
        buffer: Name,
        of: Name,
        at: usize,
        len: usize,
    },
    Clone {
        buffer: Name,
        of: Name,
    },
    Drop(Name),
    Fill {
        buffer: Name,
        byte: u8,
        stream: Name,
    },
    CopyFromSlice {
        buffer: Name,
        value: u8,
        stream: Name,
    },
    Copy {
        to: Name,
        from: Name,
        stream: Name,
    },
    Scale {
        x: Name,
        y: Name,
        double: bool,
        stream: Name,
    },
    Add {
        a: Name,
        b: Name,
        y: Name,
        stream: Name,
    },
    /// Reads a buffer back and compares it.
    Read {
        buffer: Name,
        stream: Name,
    },
    Upload {
        buffer: Name,
        value: u8,
        pending: Name,
        stream: Name,
    },
    Download {
        buffer: Name,
        pending: Name,
        stream: Name,
    },
    /// Waits for an asynchronous copy, or drops it.
    Finish {
        pending: Name,
        wait: bool,
    },
    Record {
        event: Name,
        stream: Name,
    },
    WaitEvent {
        event: Name,
        stream: Name,
    },
    SyncEvent(Name),
    SyncStream(Name),
    SyncAll,
    Capture(Name),
    /// Copies between a buffer and the pinned memory of the graph that is being captured.
    CaptureCopy {
        buffer: Name,
        pinned: Name,
        up: bool,
        stream: Name,
    },
    /// Joins all streams, unless `careless`, and ends the capture.
    Finished {
        graph: Name,
        careless: bool,
    },
    /// Throws the capture away.
    Abort,
    Replay {
        graph: Name,
        stream: Name,
    },
    /// The first graph becomes the second one, if that has the same operations.
    Update {
        graph: Name,
        with: Name,
    },
    DropGraph(Name),
    /// Fills a graph's pinned memory between replays, or reads it and compares.
    Pinned {
        pinned: Name,
        value: Option<u8>,
    },
}

/// An operation, and the host thread that does it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) thread: u32,
    pub(crate) op: Op,
}

/// A program: its first steps are done in order by thread 0, the others interleave as the schedule says.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) prelude: usize,
    pub(crate) steps: Vec<Step>,
}

/// The program of a seed: 1 to 4 streams, 1 to 3 threads.
pub(crate) fn generate(seed: u64) -> Program {
    let mut writer = Writer {
        // Neighbouring seeds must not give neighbouring stretches of one sequence.
        rng: rng(rng(seed).quiet().next_u64()).quiet(),
        streams: 0,
        capturing: false,
        steps: Vec::new(),
    };
    writer.streams = 1 + writer.rng.below(STREAMS);
    let threads = 1 + writer.rng.below(3);
    for stream in 0..writer.streams {
        writer.push(0, Op::Stream(stream));
    }
    for buffer in 0..3 {
        let op = writer.alloc(buffer);
        writer.push(0, op);
    }
    let prelude = writer.steps.len();
    let len = 12 + writer.rng.below(28);
    for _ in 0..len {
        let thread = writer.rng.below(threads) as u32;
        let op = writer.op();
        writer.push(thread, op);
    }
    Program {
        prelude,
        steps: writer.steps,
    }
}

struct Writer {
    rng: Rng,
    streams: usize,
    /// Whether the program, in its own order, is capturing here.
    capturing: bool,
    steps: Vec<Step>,
}

impl Writer {
    fn push(&mut self, thread: u32, op: Op) {
        self.steps.push(Step { thread, op });
    }

    fn stream(&mut self) -> Name {
        self.rng.below(self.streams)
    }

    fn value(&mut self) -> u8 {
        1 + self.rng.below(200) as u8
    }

    fn alloc(&mut self, buffer: Name) -> Op {
        Op::Alloc {
            buffer,
            len: 1 + self.rng.below(LONGEST),
            zeroed: self.rng.below(3) == 0,
            stream: self.stream(),
        }
    }

    fn op(&mut self) -> Op {
        let stream = self.stream();
        let [buffer, other, third] = [0; 3].map(|_| self.rng.below(BUFFERS));
        let (event, pending) = (self.rng.below(EVENTS), self.rng.below(PENDING));
        let (graph, pinned) = (self.rng.below(GRAPHS), self.rng.below(PINNED));
        match self.rng.below(100) {
            0..8 => self.alloc(buffer),
            8..13 => Op::View {
                buffer,
                of: other,
                at: self.rng.below(LONGEST),
                len: 1 + self.rng.below(LONGEST),
            },
            13..16 => Op::Clone { buffer, of: other },
            16..23 => Op::Drop(buffer),
            23..29 => Op::Fill {
                buffer,
                byte: [0, 0x3C, 0x40][self.rng.below(3)],
                stream,
            },
            29..33 => Op::CopyFromSlice {
                buffer,
                value: self.value(),
                stream,
            },
            33..41 => Op::Copy {
                to: buffer,
                from: other,
                stream,
            },
            41..50 => Op::Scale {
                x: buffer,
                y: other,
                double: self.rng.below(2) == 0,
                stream,
            },
            50..59 => Op::Add {
                a: buffer,
                b: other,
                y: third,
                stream,
            },
            59..62 => Op::Read { buffer, stream },
            62..65 => Op::Upload {
                buffer,
                value: self.value(),
                pending,
                stream,
            },
            65..68 => Op::Download {
                buffer,
                pending,
                stream,
            },
            68..70 => Op::Finish {
                pending,
                wait: self.rng.below(2) == 0,
            },
            70..73 => Op::Record { event, stream },
            73..77 => Op::WaitEvent { event, stream },
            77 => Op::SyncEvent(event),
            78 => Op::SyncStream(stream),
            79 => Op::SyncAll,
            80..83 => match self.rng.below(2) {
                0 => Op::DropStream(stream),
                _ => Op::Stream(stream),
            },
            83..92 => match (self.capturing, self.rng.below(12)) {
                (false, _) => {
                    self.capturing = true;
                    Op::Capture(stream)
                }
                (true, 0..4) => Op::CaptureCopy {
                    buffer,
                    pinned,
                    up: self.rng.below(2) == 0,
                    stream,
                },
                (true, 4) => {
                    self.capturing = false;
                    Op::Abort
                }
                (true, _) => {
                    self.capturing = false;
                    Op::Finished {
                        graph,
                        careless: self.rng.below(8) == 0,
                    }
                }
            },
            92..96 => Op::Replay { graph, stream },
            96 => Op::Update {
                graph,
                with: self.rng.below(GRAPHS),
            },
            97 => Op::DropGraph(graph),
            _ => Op::Pinned {
                pinned,
                value: (self.rng.below(2) == 0).then_some(9),
            },
        }
    }
}
