//! Execution of the operations of streams.

use crate::execution::padding;
use crate::machine::host::Host;
use crate::queues::op::{Await, Op, OpKind, Place, Ran};
use crate::races::shadow::{Actor, How};
use crate::report::{Access, Report, ReportKind};
use rocmforge_amdgcn::{ByteState, MemFault, MemFaultKind};
use rocmforge_hip_sys::{hipStreamWaitValueAnd, hipStreamWaitValueEq, hipStreamWaitValueGte};
use std::sync::Arc;
use std::time::Duration;

/// Bytes moved between host and device at a time.
const BOUNCE: usize = 64 << 10;

impl Host {
    /// Runs an operation (all but host functions, which must run without the lock).
    pub(crate) fn execute(&mut self, op: Op) -> Ran {
        self.trace.number(op.serial);
        let Op { kind, actor, .. } = op;
        self.execute_part(kind, &actor)
    }

    /// Runs what `actor` does, or a part of it.
    pub(crate) fn execute_part(&mut self, kind: OpKind, actor: &Arc<Actor>) -> Ran {
        let started = self.span_begins(&kind);
        let ran = self.execute_kind(kind, actor);
        self.span_ends(started, actor);
        ran
    }

    fn execute_kind(&mut self, kind: OpKind, actor: &Arc<Actor>) -> Ran {
        let (api, call) = (actor.api, actor.call);
        match kind {
            OpKind::Wait | OpKind::Host { .. } | OpKind::Await(_) => {}
            OpKind::Many(parts) => {
                for part in parts {
                    if self.execute_part(part, actor) == Ran::Hung {
                        return Ran::Hung;
                    }
                }
                return Ran::Done;
            }
            OpKind::Write { to, value, size } => {
                self.renew(to, call);
                if self.still_there(to, size, Access::Write, actor) {
                    self.write_bytes(to, &value.to_le_bytes()[..size]);
                    self.wrote(to, size, actor);
                }
            }
            OpKind::Record { event, recording } => {
                let now = self.now();
                if let Some(record) = self.events.get_mut(event).and_then(|event| event.record.as_mut())
                    && record.id == recording
                {
                    record.time = Some(now);
                }
            }
            OpKind::Copy { to, from, size } => {
                self.renew(to, call);
                self.renew(from, call);
                self.advance(Duration::from_nanos(2000 + size as u64 / 25));
                if self.still_there(to, size, Access::Write, actor) && self.still_there(from, size, Access::Read, actor)
                {
                    self.check_watches_before(actor.epoch);
                    self.copy(to, from, size, api, call);
                    self.touch(from, size, How::Access(Access::Read), actor);
                    self.wrote(to, size, actor);
                    self.check_watches_after(actor.epoch);
                }
            }
            OpKind::Fill {
                to,
                pattern,
                width,
                size,
            } => {
                self.renew(to, call);
                self.advance(Duration::from_nanos(2000 + size as u64 / 500));
                if self.still_there(to, size, Access::Write, actor) {
                    self.fill(to, pattern, width, size);
                    self.wrote(to, size, actor);
                }
            }
            OpKind::Kernel(launch) => return self.run_kernel(&launch, actor),
            OpKind::Block { address, id, used } => self.use_block(address, id, used),
            OpKind::Free { card, address, id } => {
                if self.cards[card].vram.find(address).is_some_and(|a| a.id == id) {
                    self.release(card, address, actor);
                }
            }
        }
        self.advance(Duration::from_nanos(100));
        Ran::Done
    }

    /// The operation that `call` enqueued is about to use a place.
    fn renew(&mut self, place: Place, call: u64) {
        if let Place::Device { card, address, .. } = place {
            self.cards[card].vram.renew(address, call);
        }
    }

    /// A copy or fill has written `size` bytes.
    fn wrote(&mut self, to: Place, size: usize, actor: &Arc<Actor>) {
        self.touch(to, size, How::Access(Access::Write), actor);
        if !matches!(to, Place::Device { .. }) {
            let start = to.address();
            let watches = &mut self.races.watches;
            watches.taint(start, start + size as u64, Some(actor.epoch));
        }
    }

    /// Frees the allocation that starts at `address`, as `actor` does.
    pub(crate) fn release(&mut self, card: usize, address: u64, actor: &Arc<Actor>) {
        if let Some(allocation) = self.cards[card].vram.find(address).cloned() {
            self.remember_freed(card, &allocation, actor);
            self.cards[card].vram.release(address, actor.call);
            self.pools.released(allocation.id);
        }
    }

    /// Whether the memory of a copy has survived until the copy runs.
    fn still_there(&mut self, place: Place, size: usize, access: Access, actor: &Actor) -> bool {
        let alive = match place {
            Place::Device { card, address, id } => self.cards[card].vram.find(address).is_some_and(|a| a.id == id),
            Place::Pinned { address, id } => self.pinned.find(address).is_some_and(|range| range.id == id),
            Place::Pageable { .. } => true,
        };
        if !alive {
            let (freed, by) = match place {
                Place::Device { id, .. } => self.races.freed(id),
                _ => (None, None),
            };
            let mut message = "the memory was freed while the operation was still queued".to_owned();
            if let Place::Device { card, address, .. } = place
                && let Some(successor) = self.cards[card].vram.find(address)
            {
                message = format!("{message}; now another allocation is there: {}", successor.info());
            }
            let report = Report {
                stream: actor.stream,
                other: by,
                ..Report::of_call(ReportKind::UseAfterFree, actor.api, actor.call, message)
            };
            self.report(report.at(Some(access), place.address(), size as u64, freed));
        }
        alive
    }

    fn copy(&mut self, to: Place, from: Place, size: usize, api: &'static str, call: u64) {
        match (to, from) {
            (
                Place::Device { card, address, .. },
                Place::Device {
                    card: other,
                    address: source,
                    ..
                },
            ) => {
                if card == other {
                    self.cards[card].vram.copy_within(address, source, size as u64);
                } else {
                    let mut bytes = vec![0; size];
                    self.read_device(other, source, &mut bytes, (source, size), api, call);
                    let written = self.cards[card].vram.memory.write(address, &bytes);
                    debug_assert!(written.is_ok(), "the range was checked");
                }
            }
            (Place::Device { card, address, .. }, from) => {
                let mut bounce = vec![0; size.min(BOUNCE)];
                for at in (0..size).step_by(BOUNCE) {
                    let n = (size - at).min(BOUNCE);
                    read_host(from, at, &mut bounce[..n]);
                    let written = self.cards[card].vram.memory.write(address + at as u64, &bounce[..n]);
                    debug_assert!(written.is_ok(), "the range was checked");
                }
            }
            (to, Place::Device { card, address, .. }) => {
                let mut bounce = vec![0; size.min(BOUNCE)];
                let mut checked = true;
                for at in (0..size).step_by(BOUNCE) {
                    let n = (size - at).min(BOUNCE);
                    let source = address + at as u64;
                    if checked {
                        checked = self.read_device(card, source, &mut bounce[..n], (address, size), api, call);
                    } else {
                        self.cards[card].vram.memory.peek(source, &mut bounce[..n]);
                    }
                    write_host(to, at, &bounce[..n]);
                }
            }
            (to, from) => {
                let source = std::ptr::with_exposed_provenance::<u8>(from.address() as usize);
                let target = std::ptr::with_exposed_provenance_mut::<u8>(to.address() as usize);
                // SAFETY: the caller of the copy promised `size` readable and writable bytes; the ranges may overlap.
                unsafe { source.copy_to(target, size) };
            }
        }
    }

    /// Reads a part of a copy's device memory; what nobody has written is reported (once) and read all the same. The padding of records is no
    /// more than a warning.
    fn read_device(
        &mut self,
        card: usize,
        address: u64,
        out: &mut [u8],
        whole: (u64, usize),
        api: &'static str,
        call: u64,
    ) -> bool {
        let vram = &self.cards[card].vram;
        let Err(fault) = vram.memory.read(address, out) else {
            return true;
        };
        vram.memory.peek(address, out);
        let allocation = vram.blame(fault.bad);
        let uninitialised = fault.kind == MemFaultKind::Uninitialised;
        let report = |message| Report::of_call(kind_of(fault), api, call, message);
        if let Some(padding) = uninitialised
            .then(|| padding::of(&vram.memory, whole.0, whole.1))
            .flatten()
        {
            let warning = report(padding.to_string()).at(Some(Access::Read), whole.0, whole.1 as u64, allocation);
            self.warn_of_copy(warning);
        } else {
            let size = out.len() as u64;
            self.report(report(describe(fault)).at(Some(Access::Read), fault.bad, size, allocation));
        }
        false
    }

    /// Writes a few bytes wherever they go.
    fn write_bytes(&mut self, to: Place, bytes: &[u8]) {
        match to {
            Place::Device { card, address, .. } => {
                let written = self.cards[card].vram.memory.write(address, bytes);
                debug_assert!(written.is_ok(), "the range was checked");
            }
            host => write_host(host, 0, bytes),
        }
    }

    /// Whether what a stream waits for has come. True also where the memory is gone, which is reported when the wait runs.
    pub(crate) fn has_come(&mut self, wait: &Await, actor: &Actor) -> bool {
        if !self.still_there(wait.from, wait.size, Access::Read, actor) {
            return true;
        }
        let mut bytes = [0; 8];
        match wait.from {
            Place::Device { card, address, .. } => {
                self.cards[card].vram.memory.peek(address, &mut bytes[..wait.size]);
            }
            host => read_host(host, 0, &mut bytes[..wait.size]),
        }
        let bits = if wait.size == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let (found, wanted) = (u64::from_le_bytes(bytes) & wait.mask & bits, wait.value & bits);
        match wait.flags {
            hipStreamWaitValueGte => found >= wanted,
            hipStreamWaitValueEq => found == wanted,
            hipStreamWaitValueAnd => found & wanted != 0,
            _ => !(found | wanted & wait.mask) & bits != 0,
        }
    }

    fn fill(&mut self, to: Place, pattern: [u8; 4], width: usize, size: usize) {
        let uniform = pattern[..width].iter().all(|byte| *byte == pattern[0]);
        if let (Place::Device { card, address, .. }, true) = (to, uniform) {
            let filled = self.cards[card].vram.memory.fill(address, size as u64, pattern[0]);
            debug_assert!(filled.is_ok(), "the range was checked");
            return;
        }
        let uncleared = match to {
            // Touching gigabytes takes seconds.
            Place::Pinned { address, .. } if uniform && pattern[0] == 0 => self
                .pinned
                .find(address)
                .and_then(|range| range.block.as_ref()?.clear(address, size))
                .map(|(start, bytes)| {
                    let (before, behind) = (start - address, start - address + bytes);
                    [(0, before), (behind, size - behind)]
                }),
            _ => None,
        };
        if let Some(ends) = uncleared {
            for (at, bytes) in ends {
                write_host(to, at, &vec![0; bytes]);
            }
            return;
        }
        let endless = pattern[..width].iter().copied().cycle();
        let bytes: Vec<u8> = endless.take(size.min(BOUNCE)).collect();
        for at in (0..size).step_by(BOUNCE) {
            let part = &bytes[..(size - at).min(BOUNCE)];
            match to {
                Place::Device { card, address, .. } => {
                    let written = self.cards[card].vram.memory.write(address + at as u64, part);
                    debug_assert!(written.is_ok(), "the range was checked");
                }
                host => write_host(host, at, part),
            }
        }
    }
}

/// What a refused access is called in a report.
fn kind_of(fault: MemFault) -> ReportKind {
    match fault.kind {
        MemFaultKind::OutOfBounds => ReportKind::OutOfBounds,
        MemFaultKind::UseAfterFree => ReportKind::UseAfterFree,
        MemFaultKind::Uninitialised => ReportKind::Uninitialised,
    }
}

fn describe(fault: MemFault) -> String {
    let what = match fault.state {
        ByteState::Unmapped => "belongs to no allocation",
        ByteState::Freed => "belongs to a freed allocation",
        ByteState::Uninit => "was never written",
        ByteState::Init => "is fine",
    };
    format!("the byte at {:#x} {what}", fault.bad)
}

fn read_host(from: Place, at: usize, out: &mut [u8]) {
    let source = std::ptr::with_exposed_provenance::<u8>(from.address() as usize).wrapping_add(at);
    // SAFETY: the caller of the copy promised that its host range is readable until the copy has run; pinned ranges
    // were just looked up.
    unsafe { source.copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
}

fn write_host(to: Place, at: usize, bytes: &[u8]) {
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to.address() as usize).wrapping_add(at);
    // SAFETY: the caller of the copy promised that its host range is writable until the copy has run; pinned ranges
    // were just looked up.
    unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
}
