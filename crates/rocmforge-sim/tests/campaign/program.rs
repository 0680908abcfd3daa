//! Random host programs that are correct, whatever the schedule, and places to plant one mistake in them.

use rocmforge_sim::program::{Arg, Name, Op, Task};
use rocmforge_test_support::split_mix_64;

/// SplitMix64 from a state of its own.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x5DEE_CE66_D153_77A5)
    }

    pub(crate) fn next(&mut self) -> u64 {
        split_mix_64(&mut self.0)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Which stream has used something since the host or another writer was last ordered behind it, and whether it wrote.
type Uses = Vec<(Name, bool)>;

struct Buffer {
    name: Name,
    size: usize,
    uses: Uses,
}

struct HostBuffer {
    name: Name,
    size: usize,
    pageable: bool,
    uses: Uses,
}

#[derive(Clone, Copy)]
struct Stream {
    name: Name,
    blocking: bool,
}

/// Writes a program operation by operation, ordering every use of memory behind those it depends on.
pub(crate) struct Writer {
    pub(crate) rng: Rng,
    pub(crate) ops: Vec<Op>,
    /// What has to be done at the end.
    pub(crate) ending: Vec<Op>,
    buffers: Vec<Buffer>,
    hosts: Vec<HostBuffer>,
    streams: Vec<Stream>,
    events: Vec<Name>,
    next: Name,
}

/// Streams that live as long as the program and order themselves with no other.
pub(crate) const FREE_STREAMS: [Name; 3] = [1, 2, 3];
/// The module that is loaded from image 0 and lives as long as the program.
pub(crate) const MODULE: Name = 1;
/// Its kernels, by their names in programs.
pub(crate) const KERNELS: [&str; 4] = ["fill", "add", "count", "rotate"];

pub(crate) fn kernel(name: &str) -> Name {
    KERNELS
        .iter()
        .position(|kernel| *kernel == name)
        .expect("a kernel of the list") as Name
}

/// Elements a launch works on, at most.
const ELEMENTS: usize = 64;

impl Writer {
    pub(crate) fn new(seed: u64) -> Self {
        let mut ops = vec![Op::Load {
            module: MODULE,
            image: 0,
        }];
        for (function, kernel) in KERNELS.into_iter().enumerate() {
            ops.push(Op::Function {
                function: function as Name,
                module: MODULE,
                kernel,
            });
        }
        let mut streams = vec![Stream {
            name: 0,
            blocking: false,
        }];
        for stream in FREE_STREAMS {
            let blocking = false;
            ops.push(Op::Stream { stream, blocking });
            streams.push(Stream { name: stream, blocking });
        }
        Self {
            rng: Rng::new(seed),
            ops,
            ending: Vec::new(),
            buffers: Vec::new(),
            hosts: Vec::new(),
            streams,
            events: Vec::new(),
            next: 100,
        }
    }

    pub(crate) fn name(&mut self) -> Name {
        self.next += 1;
        self.next
    }

    pub(crate) fn push(&mut self, op: Op) -> usize {
        self.ops.push(op);
        self.ops.len() - 1
    }

    /// Whether HIP orders these two by itself: the null stream and a blocking one.
    fn legacy(&self, a: Name, b: Name) -> bool {
        let blocking = |name| self.streams.iter().any(|s| s.name == name && s.blocking);
        a == 0 && blocking(b) || b == 0 && blocking(a)
    }

    /// The host waits for a stream, in one of the ways there are.
    fn wait_for(&mut self, stream: Name) {
        match self.rng.below(4) {
            0 => {
                let event = self.name();
                self.push(Op::Event { event });
                self.push(Op::Record { event, stream });
                self.push(Op::SyncEvent { event });
                self.push(Op::DestroyEvent { event });
            }
            1 => {
                self.push(Op::PollStream { stream });
            }
            _ => {
                self.push(Op::SyncStream { stream });
            }
        }
        let drop = |uses: &mut Uses| uses.retain(|(user, _)| *user != stream);
        self.buffers.iter_mut().for_each(|buffer| drop(&mut buffer.uses));
        self.hosts.iter_mut().for_each(|host| drop(&mut host.uses));
    }

    /// `to` waits for what `from` has now.
    fn edge(&mut self, from: Name, to: Name) {
        if self.rng.chance(25) {
            return self.wait_for(from);
        }
        let event = match self.events.len() {
            0..4 => {
                let event = self.name();
                self.push(Op::Event { event });
                self.events.push(event);
                event
            }
            n => self.events[self.rng.below(n)],
        };
        self.push(Op::Record { event, stream: from });
        self.push(Op::Wait { stream: to, event });
        if self.rng.chance(20) {
            self.push(Op::DestroyEvent { event });
            self.events.retain(|other| *other != event);
        }
    }

    /// Orders a use by `stream` behind those of `uses` it depends on, and gives the uses with it.
    fn order(&mut self, uses: Uses, stream: Name, write: bool) -> Uses {
        for (user, wrote) in &uses {
            if *user != stream && (write || *wrote) && !self.legacy(*user, stream) {
                self.edge(*user, stream);
            }
        }
        let mut uses = if write { Vec::new() } else { uses };
        uses.push((stream, write));
        uses
    }

    fn use_buffer(&mut self, index: usize, stream: Name, write: bool) -> Name {
        let uses = std::mem::take(&mut self.buffers[index].uses);
        self.buffers[index].uses = self.order(uses, stream, write);
        self.buffers[index].name
    }

    fn use_host(&mut self, index: usize, stream: Name, write: bool) -> Name {
        let uses = std::mem::take(&mut self.hosts[index].uses);
        self.hosts[index].uses = self.order(uses, stream, write);
        self.hosts[index].name
    }

    /// The host itself comes behind the uses that it depends on.
    fn host_after(&mut self, uses: &Uses, write: bool) {
        for (user, wrote) in uses {
            if write || *wrote {
                self.wait_for(*user);
            }
        }
    }

    fn stream(&mut self) -> Name {
        let index = self.rng.below(self.streams.len());
        self.streams[index].name
    }

    fn buffer(&mut self) -> usize {
        if self.buffers.is_empty() {
            self.new_buffer();
        }
        self.rng.below(self.buffers.len())
    }

    fn host(&mut self) -> usize {
        if self.hosts.is_empty() {
            self.new_host();
        }
        self.rng.below(self.hosts.len())
    }

    fn new_buffer(&mut self) {
        let (name, size) = (self.name(), 256 + 4 * self.rng.below(256));
        let stream = self.stream();
        if self.rng.chance(25) {
            self.push(Op::MallocAsync {
                buffer: name,
                size,
                stream,
            });
        } else {
            self.push(Op::Malloc { buffer: name, size });
        }
        self.push(Op::Fill {
            buffer: name,
            at: 0,
            size,
            stream,
        });
        let uses = vec![(stream, true)];
        self.buffers.push(Buffer { name, size, uses });
    }

    fn new_host(&mut self) {
        let (host, size) = (self.name(), 256 + self.rng.below(512));
        let pageable = self.rng.chance(30);
        self.push(if pageable {
            Op::HostVec { host, size }
        } else {
            Op::HostMalloc { host, size }
        });
        self.push(Op::HostWrite { host });
        self.hosts.push(HostBuffer {
            name: host,
            size,
            pageable,
            uses: Vec::new(),
        });
    }

    /// Appends one correct step.
    pub(crate) fn step(&mut self) {
        match self.rng.below(100) {
            0..6 if self.buffers.len() < 10 => self.new_buffer(),
            6..8 if self.hosts.len() < 5 => self.new_host(),
            8..12 if self.buffers.len() > 3 => {
                let index = self.buffer();
                self.free(index);
            }
            12..13 if self.hosts.len() > 2 => {
                let index = self.host();
                if !self.hosts[index].pageable {
                    let host = self.hosts.swap_remove(index);
                    self.host_after(&host.uses, true);
                    self.push(Op::HostFree { host: host.name });
                }
            }
            13..16 if self.streams.len() < 7 => {
                let (stream, blocking) = (self.name(), self.rng.chance(50));
                self.push(Op::Stream { stream, blocking });
                self.streams.push(Stream { name: stream, blocking });
            }
            16..17 if self.streams.len() > 5 => {
                // With work in it, at times: that is legal.
                let stream = self.streams.swap_remove(self.streams.len() - 1);
                if self.rng.chance(50) {
                    self.wait_for(stream.name);
                    self.push(Op::DestroyStream { stream: stream.name });
                } else {
                    self.streams.push(stream);
                }
            }
            17..34 => {
                let (index, stream) = (self.buffer(), self.stream());
                let size = self.buffers[index].size;
                let buffer = self.use_buffer(index, stream, true);
                let at = self.rng.below(size);
                let size = 1 + self.rng.below(size - at);
                self.push(Op::Fill {
                    buffer,
                    at,
                    size,
                    stream,
                });
            }
            34..44 => self.upload(),
            44..54 => self.download(),
            54..64 => {
                let (from, to, stream) = (self.buffer(), self.buffer(), self.stream());
                if from != to {
                    let size = self.buffers[from].size.min(self.buffers[to].size);
                    let from = self.use_buffer(from, stream, false);
                    let to = self.use_buffer(to, stream, true);
                    let size = 1 + self.rng.below(size);
                    self.push(Op::Copy { from, to, size, stream });
                }
            }
            64..84 => self.launch(),
            84..88 => {
                let (index, stream) = (self.host(), self.stream());
                if !self.hosts[index].pageable {
                    let write = self.rng.chance(50);
                    let host = self.use_host(index, stream, write);
                    let task = if write { Task::Writes(host) } else { Task::Reads(host) };
                    self.push(Op::HostFunction { stream, task });
                }
            }
            88..93 => {
                let (index, write) = (self.host(), self.rng.chance(50));
                let uses = self.hosts[index].uses.clone();
                self.host_after(&uses, write);
                let host = self.hosts[index].name;
                self.push(if write {
                    Op::HostWrite { host }
                } else {
                    Op::HostRead { host }
                });
            }
            93..95 => {
                let stream = self.stream();
                self.wait_for(stream);
            }
            95..96 => {
                self.push(Op::SyncDevice);
                self.buffers.iter_mut().for_each(|buffer| buffer.uses.clear());
                self.hosts.iter_mut().for_each(|host| host.uses.clear());
            }
            _ => {
                let (index, stream) = (self.buffer(), self.stream());
                let size = self.buffers[index].size;
                let buffer = self.use_buffer(index, stream, true);
                let at = 0;
                self.push(Op::Fill {
                    buffer,
                    at,
                    size,
                    stream,
                });
            }
        }
    }

    fn upload(&mut self) {
        let (host, index) = (self.host(), self.buffer());
        let sync = self.rng.chance(20);
        let stream = if sync { 0 } else { self.stream() };
        let size = self.hosts[host].size.min(self.buffers[index].size);
        let host = self.use_host(host, stream, false);
        let buffer = self.use_buffer(index, stream, true);
        let (at, size) = (0, 1 + self.rng.below(size));
        self.push(if sync {
            Op::UploadSync { host, buffer, at, size }
        } else {
            Op::Upload {
                host,
                buffer,
                at,
                size,
                stream,
            }
        });
    }

    fn download(&mut self) {
        let (host, index) = (self.host(), self.buffer());
        let sync = self.rng.chance(20);
        let stream = if sync { 0 } else { self.stream() };
        let size = self.hosts[host].size.min(self.buffers[index].size);
        let host = self.use_host(host, stream, true);
        let buffer = self.use_buffer(index, stream, false);
        let (at, size) = (0, 1 + self.rng.below(size));
        self.push(if sync {
            Op::DownloadSync { buffer, host, at, size }
        } else {
            Op::Download {
                buffer,
                host,
                at,
                size,
                stream,
            }
        });
    }

    fn launch(&mut self) {
        let (a, b, out, stream) = (self.buffer(), self.buffer(), self.buffer(), self.stream());
        if out == a || out == b {
            return;
        }
        let n = 1 + self.rng.below(ELEMENTS);
        let (function, args) = match self.rng.below(4) {
            0 => {
                let (a, b) = (self.use_buffer(a, stream, false), self.use_buffer(b, stream, false));
                let out = self.use_buffer(out, stream, true);
                (
                    "add",
                    vec![
                        Arg::Buffer(a, 0),
                        Arg::Buffer(b, 0),
                        Arg::Buffer(out, 0),
                        Arg::U32(n as u32),
                    ],
                )
            }
            1 => {
                let (a, out) = (self.use_buffer(a, stream, false), self.use_buffer(out, stream, true));
                (
                    "count",
                    vec![Arg::Buffer(a, 0), Arg::Buffer(out, 0), Arg::U32(n as u32)],
                )
            }
            2 => ("rotate", vec![Arg::Buffer(self.use_buffer(out, stream, true), 0)]),
            _ => (
                "fill",
                vec![
                    Arg::Buffer(self.use_buffer(out, stream, true), 0),
                    Arg::U32(7),
                    Arg::U32(n as u32),
                ],
            ),
        };
        let block = if function == "rotate" { 64 } else { 32 };
        let grid = if function == "rotate" { 1 } else { 2 };
        self.push(Op::Launch {
            function: kernel(function),
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            args,
            stream,
        });
    }

    fn free(&mut self, index: usize) {
        let buffer = self.buffers.swap_remove(index);
        if self.rng.chance(30) {
            let stream = self.stream();
            self.order(buffer.uses, stream, true);
            self.push(Op::FreeAsync {
                buffer: buffer.name,
                stream,
            });
        } else {
            self.host_after(&buffer.uses, true);
            self.push(Op::Free { buffer: buffer.name });
        }
    }

    /// The program, with everything waited for and given back.
    pub(crate) fn finish(mut self) -> Vec<Op> {
        self.push(Op::SyncDevice);
        self.buffers.iter_mut().for_each(|buffer| buffer.uses.clear());
        while !self.buffers.is_empty() {
            self.free(0);
        }
        for host in self.hosts.iter().filter(|host| !host.pageable) {
            self.ops.push(Op::HostFree { host: host.name });
        }
        self.push(Op::SyncDevice);
        let ending = std::mem::take(&mut self.ending);
        self.ops.extend(ending);
        self.push(Op::Unload { module: MODULE });
        self.ops
    }
}

/// A correct program of about `ops` operations.
pub(crate) fn clean(seed: u64, ops: usize) -> Vec<Op> {
    let mut writer = Writer::new(seed);
    while writer.ops.len() < ops {
        writer.step();
    }
    writer.finish()
}
