//! Device heap: calls of `malloc` and `free` of AMD's device library, which are reported to the attendant.

use super::Machine;
use crate::attend::{HeapBlock, WrongFree};
use crate::exec::lower::library::Entry;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::wave::{NULL, Wave};
use crate::fault::{Access, FaultKind};

/// Bytes more than asked for that a block gets, so that what follows it is no other block.
const BEHIND: u64 = 16;
/// Larger blocks get memory of their own from the host, which has a page behind them.
const SMALL: u64 = 2048;
/// Registers of LLVM's calling convention of AMDGPU: vector registers of the first argument and of the result, scalar ones of the return address.
const VALUE: usize = 0;
const RETURN: usize = 30;

/// A call of `malloc` that a wave is in.
#[derive(Clone)]
pub(crate) struct Allocation {
    /// Where it returns to, and the call itself: ELF addresses.
    back: u64,
    pc: u64,
    /// What its lanes ask for.
    sizes: Vec<(usize, u64)>,
}

impl Machine<'_> {
    /// A wave is about to jump to an ELF address.
    #[cold]
    #[inline(never)]
    pub(super) fn heap_call(&self, w: &mut Wave, ctx: &mut Ctx<'_>, i: &Ins, target: u64) {
        if !ctx.tools.memcheck || ctx.attendant.is_none() {
            return;
        }
        if w.allocation.as_ref().is_some_and(|call| call.back == target) {
            return self.allocated(w, ctx);
        }
        match self.code.heap.entry(target) {
            Some(Entry::Allocate) => {
                let sizes: Vec<_> = lanes(w).map(|lane| (lane, value(w, lane))).collect();
                for &(lane, size) in sizes.iter().filter(|(_, size)| (1..=SMALL).contains(size)) {
                    set_value(w, lane, size + BEHIND);
                }
                let pc = ctx.text + u64::from(i.at);
                // A jump at the end of a function leaves the return address of that one.
                let back = match i.dst as usize {
                    NULL => u64::from(w.s[RETURN]) | u64::from(w.s[RETURN + 1]) << 32,
                    _ => self.code.device + u64::from(i.at) + 4,
                };
                let back = self.code.pc_of(back);
                w.allocation = Some(Box::new(Allocation { back, pc, sizes }));
            }
            Some(Entry::Free) => self.freed(w, ctx, i),
            None => {}
        }
    }

    /// A call of `malloc` returns.
    fn allocated(&self, w: &mut Wave, ctx: &mut Ctx<'_>) {
        let Some(call) = w.allocation.take() else { return };
        let frames = self.dispatch.program.stack(call.pc, &w.calls);
        for &(lane, size) in &call.sizes {
            let address = value(w, lane);
            if address != 0
                && let Some(attendant) = &mut ctx.attendant
            {
                let frames = &frames;
                attendant.allocated(ctx.memory, &HeapBlock { address, size, frames });
            }
        }
    }

    /// Lanes call `free`. Those that must not give back nothing.
    fn freed(&self, w: &mut Wave, ctx: &mut Ctx<'_>, i: &Ins) {
        for lane in lanes(w).collect::<Vec<_>>() {
            let address = value(w, lane);
            let Some(attendant) = ctx.attendant.as_mut().filter(|_| address != 0) else {
                continue;
            };
            let kind = match attendant.released(ctx.memory, address) {
                Ok(()) => continue,
                Err(WrongFree::Twice) => FaultKind::DoubleFree,
                Err(WrongFree::Unknown) => FaultKind::InvalidFree,
            };
            set_value(w, lane, 0);
            ctx.fault(w, i, kind, Access::None, lane as u32, address, 0);
        }
    }
}

/// Active lanes, by their number in the wave.
fn lanes(w: &Wave) -> impl Iterator<Item = usize> + use<> {
    let exec = w.exec64();
    (0..64).filter(move |lane| exec >> lane & 1 != 0)
}

fn value(w: &Wave, lane: usize) -> u64 {
    let half = if lane < 32 { Some(w) } else { w.high.as_deref() };
    let word = |n: usize| half.map_or(0, |half| u64::from(half.v[VALUE + n].0[lane % 32]));
    word(0) | word(1) << 32
}

fn set_value(w: &mut Wave, lane: usize, value: u64) {
    let half = if lane < 32 { Some(w) } else { w.high.as_deref_mut() };
    if let Some(half) = half {
        half.v[VALUE].0[lane % 32] = value as u32;
        half.v[VALUE + 1].0[lane % 32] = (value >> 32) as u32;
    }
}
