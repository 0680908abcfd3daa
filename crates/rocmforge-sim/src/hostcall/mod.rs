//! Calls of kernels to the host (`printf`, `assert`, device `malloc`): the buffers that hidden arguments point to, and what serves them
//! while the kernel runs.
//!
//! The layout is that of AMD's device library. A wave takes a packet from the free stack, fills a header and 8 words for each lane, puts
//! it on the ready stack and sleeps until the host has cleared a bit of the header; the answer is in the first two words.

mod format;
pub(crate) mod heap;
mod message;
mod output;

pub use output::{DeviceOutput, OutputStream};

pub(crate) use output::ProcessOutput;

use crate::hostcall::heap::Heap;
use crate::machine::vram::{OutOfMemory, SystemSpace, Vram};
use message::Messages;
use rocmforge_amdgcn::{Attendant, ByteState, GlobalMemory, HeapBlock, WrongFree};
use std::collections::BTreeMap;

/// Packets; a power of two, and more than there are waves on a card.
const PACKETS: u64 = 4096;
const HEADER: u64 = 24;
const PAYLOAD: u64 = 64 * 64;
/// Where things lie in the buffer: the free and ready stacks, the headers, the signal whose value the device adds to.
const FREE: u64 = 24;
const READY: u64 = 32;
const HEADERS: u64 = 64;
const DOORBELL: u64 = HEADERS + PACKETS * HEADER;
const PAYLOADS: u64 = (DOORBELL + 64).next_multiple_of(PAYLOAD);
const SIZE: u64 = PAYLOADS + PACKETS * PAYLOAD;
/// The heap's own structure: all zeros at first.
const HEAP: u64 = 128 << 10;
/// What the device library takes memory in, aligned to itself.
const SLAB: u64 = 2 << 20;
const PAGE: u64 = 4096;
/// Services by number.
const FUNCTION: u32 = 1;
const PRINTF: u32 = 2;
const MEMORY: u32 = 3;
/// Text for standard error that is kept for the report of a trap, in bytes.
const KEPT: usize = 1024;

/// The buffers of a card.
pub(crate) struct Hostcall {
    pub(crate) buffer: u64,
    pub(crate) heap: u64,
    messages: Messages,
    /// Memory that kernels hold: its address, and what was taken for it.
    blocks: BTreeMap<u64, (u64, u64)>,
    /// What kernels hold of that, block by block.
    pub(crate) followed: Heap,
    /// What the running launch has written to standard error.
    pub(crate) errors: Vec<u8>,
    /// Services it asked for that do not exist here.
    pub(crate) refused: Vec<String>,
}

impl Hostcall {
    pub(crate) fn new(vram: &mut Vram) -> Result<Self, OutOfMemory> {
        let buffer = vram.allocate_system(SIZE)?;
        let heap = vram.allocate_system(HEAP)?;
        let memory = &mut vram.memory;
        memory.set_state(buffer, SIZE, ByteState::Init);
        memory.set_state(heap, HEAP, ByteState::Init);
        let mut put = |at: u64, value: u64| memory.poke(buffer + at, &value.to_le_bytes());
        put(0, buffer + HEADERS);
        put(8, buffer + PAYLOADS);
        put(16, buffer + DOORBELL);
        // The tag of the last packet is 1, so that no packet is a null pointer.
        for packet in 0..PACKETS {
            let next = match packet {
                0 => 0,
                1 => PACKETS,
                n => n - 1,
            };
            put(HEADERS + packet * HEADER, next);
        }
        put(FREE, PACKETS - 1);
        put(READY, 0);
        put(40, PACKETS - 1);
        Ok(Self {
            buffer,
            heap,
            messages: Messages::default(),
            blocks: BTreeMap::new(),
            followed: Heap::default(),
            errors: Vec::new(),
            refused: Vec::new(),
        })
    }
}

/// Serves the calls of one launch.
pub(crate) struct Server<'a> {
    pub(crate) hostcall: &'a mut Hostcall,
    pub(crate) space: &'a mut SystemSpace,
    pub(crate) output: &'a mut dyn DeviceOutput,
    /// Blocks of `malloc` are followed: what is no block may not be accessed.
    pub(crate) follows: bool,
    /// The launch.
    pub(crate) kernel: &'a str,
    pub(crate) call: u64,
}

fn word(memory: &GlobalMemory, address: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.peek(address, &mut bytes);
    u64::from_le_bytes(bytes)
}

impl Attendant for Server<'_> {
    fn attend(&mut self, memory: &mut GlobalMemory) {
        let buffer = self.hostcall.buffer;
        let mut packet = word(memory, buffer + READY);
        if packet == 0 {
            return;
        }
        memory.poke(buffer + READY, &[0; 8]);
        let mut packets = Vec::new();
        // A kernel may have written anything; there are no more packets than this.
        while packet != 0 && packets.len() < PACKETS as usize {
            let index = packet % PACKETS;
            packets.push(index);
            packet = word(memory, buffer + HEADERS + index * HEADER);
        }
        // The first on the stack came last.
        for index in packets.into_iter().rev() {
            self.serve(memory, index);
        }
    }

    fn allocated(&mut self, memory: &mut GlobalMemory, block: &HeapBlock<'_>) {
        let (kernel, call) = (self.kernel, self.call);
        self.hostcall.followed.allocated(memory, block, kernel, call);
    }

    fn released(&mut self, memory: &mut GlobalMemory, address: u64) -> Result<(), WrongFree> {
        self.hostcall.followed.released(memory, address, self.call)
    }
}

impl Server<'_> {
    fn serve(&mut self, memory: &mut GlobalMemory, index: u64) {
        let header = self.hostcall.buffer + HEADERS + index * HEADER;
        let active = word(memory, header + 8);
        let rest = word(memory, header + 16);
        let (service, control) = (rest as u32, (rest >> 32) as u32);
        for lane in (0..64).filter(|lane| active >> lane & 1 != 0) {
            let slot = self.hostcall.buffer + PAYLOADS + index * PAYLOAD + lane * 64;
            let mut data: [u64; 8] = std::array::from_fn(|n| word(memory, slot + 8 * n as u64));
            self.call(memory, service, &mut data);
            for (n, value) in data[..2].iter().enumerate() {
                memory.poke(slot + 8 * n as u64, &value.to_le_bytes());
            }
        }
        memory.poke(header + 20, &(control & !1).to_le_bytes());
    }

    /// One call of one lane; the answer replaces the first words.
    fn call(&mut self, memory: &mut GlobalMemory, service: u32, data: &mut [u64; 8]) {
        match service {
            PRINTF => {
                if let Some(message) = self.hostcall.messages.take(data) {
                    data[0] = self.print(&message);
                }
            }
            MEMORY if data[0] != 0 => self.release(memory, data[0]),
            MEMORY => data[0] = self.lend(memory, data[1]).unwrap_or(0),
            _ => {
                let what = match service {
                    FUNCTION => "a call of a host function by its address".to_owned(),
                    other => format!("service {other} of the host"),
                };
                if !self.hostcall.refused.contains(&what) {
                    self.hostcall.refused.push(what);
                }
                data[..2].fill(0);
            }
        }
    }

    /// Prints a message; the number of characters, or -1.
    fn print(&mut self, message: &[u64]) -> u64 {
        let stream = match message.first() {
            Some(0) => OutputStream::Out,
            Some(1) => OutputStream::Error,
            _ => return u64::MAX,
        };
        let text = format::format(&message[1..]);
        self.output.write(stream, &text);
        if stream == OutputStream::Error {
            let errors = &mut self.hostcall.errors;
            errors.extend(text.iter().take(KEPT.saturating_sub(errors.len())));
        }
        text.len() as u64
    }

    fn lend(&mut self, memory: &mut GlobalMemory, bytes: u64) -> Option<u64> {
        let align = if bytes == SLAB { SLAB } else { PAGE };
        // No page behind a slab that nobody may touch: the next one could begin only a whole slab later.
        let behind = if bytes == SLAB { 0 } else { PAGE };
        let kept = bytes.max(1).checked_next_multiple_of(PAGE)?.checked_add(behind)?;
        let taken = kept.checked_add(align)?;
        let start = self.space.take(taken)?;
        let address = start.next_multiple_of(align);
        // What was taken for the alignment goes back at once.
        let rests = [
            (start, address - start),
            (address + kept, start + taken - address - kept),
        ];
        for (at, size) in rests.into_iter().filter(|(_, size)| *size > 0) {
            self.space.insert(at, size);
        }
        let state = if self.follows {
            ByteState::Unmapped
        } else {
            ByteState::Uninit
        };
        memory.set_state(address, bytes, state);
        self.hostcall.blocks.insert(address, (address, kept));
        Some(address)
    }

    fn release(&mut self, memory: &mut GlobalMemory, address: u64) {
        match self.hostcall.blocks.remove(&address) {
            Some((start, taken)) => {
                memory.set_state(start, taken, ByteState::Freed);
                self.space.insert(start, taken);
            }
            None => {
                let what = format!("a free of {address:#x}, which the kernel does not hold");
                self.hostcall.refused.push(what);
            }
        }
    }
}
