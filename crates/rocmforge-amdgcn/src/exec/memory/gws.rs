//! Global wave sync: counters beside memory at which waves of all workgroups of a cooperative launch meet.
//!
//! A resource is a counter and the waves that wait at it. A barrier counts it down; the wave that finds it at zero lets all go on and puts in
//! the count of the next round. A semaphore lets as many waves go on as its counter says. The runtime sets resource 0 to the number of
//! workgroups less one before a cooperative launch; no other launch has resources.

use crate::exec::code::Code;
use crate::exec::code::operands::{NOTHING, Refused, source};
use crate::exec::state::ctx::{Ctx, Ins, Observer};
use crate::exec::state::fields::Flow;
use crate::exec::state::grid::{RESOURCES, Ticket};
use crate::exec::state::wave::{M0, Wave, WaveState};
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Inst, Op, Ty};

/// What an instruction does with its resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Init,
    Barrier,
    /// One more wave may go on; so many more; all that wait.
    Add,
    AddMany,
    ReleaseAll,
    /// Waits until the counter is above zero, and takes one.
    Take,
}

const ACTS: [(Op, Act); 6] = [
    (Op::DsGwsInit, Act::Init),
    (Op::DsGwsBarrier, Act::Barrier),
    (Op::DsGwsSemaV, Act::Add),
    (Op::DsGwsSemaBr, Act::AddMany),
    (Op::DsGwsSemaReleaseAll, Act::ReleaseAll),
    (Op::DsGwsSemaP, Act::Take),
];

/// Whether it is an instruction of global wave sync.
pub(crate) fn is_sync(op: Op) -> bool {
    ACTS.iter().any(|&(known, _)| known == op)
}

/// Lowers such an instruction; `None` for all others.
pub(crate) fn lower(inst: &Inst, code: &mut Code) -> Option<Result<(), Refused>> {
    let act = ACTS.iter().position(|&(known, _)| known == inst.op)?;
    Some(source(inst.src[0], Ty::B32).map(|a| {
        code.ins.push(Ins {
            flow: Flow::Gws,
            a,
            imm: inst.imm,
            half: act as u8,
            ..NOTHING
        });
    }))
}

/// Whether a wave goes on after such an instruction.
pub(crate) fn execute(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) -> bool {
    let act = ACTS[usize::from(i.half)].1;
    if w.execz() {
        return true;
    }
    let value = first_active(w, i);
    let number = ((w.s[M0] >> 16).wrapping_add(i.imm as u32) % RESOURCES as u32) as u8;
    let Some(resources) = &mut c.gws.resources else {
        if let Some(fault) = c.fault(w, i, FaultKind::BadLaunch, Access::None, 0, 0, 0) {
            fault.note =
                "waits for the whole grid, which only a cooperative launch can (hipLaunchCooperativeKernel)".to_owned();
        }
        w.state = WaveState::Ended;
        c.stop = true;
        return false;
    };
    let resource = &mut resources[usize::from(number)];
    let mut observer = c.observer.borrow_mut();
    if act != Act::Take && act != Act::Init {
        observer.release_at(w.index, u64::from(number));
    }
    match act {
        Act::Init => resource.counter = value,
        Act::Add => resource.counter = resource.counter.saturating_add(1),
        Act::AddMany => resource.counter = resource.counter.saturating_add(value),
        Act::ReleaseAll => resource.counter = resource.counter.saturating_add(resource.waiting),
        Act::Barrier if resource.counter == 0 => {
            resource.counter = value;
            resource.rounds += 1;
            resource.released = observer.released_at(u64::from(number));
            observer.acquire_at(w.index, u64::from(number), resource.released);
        }
        Act::Take if resource.counter > 0 => {
            resource.counter -= 1;
            take(&mut *observer, w, number);
        }
        Act::Barrier | Act::Take => {
            resource.waiting += 1;
            let barrier = act == Act::Barrier;
            if barrier {
                resource.counter -= 1;
            }
            w.gws = Some(Ticket {
                resource: number,
                round: barrier.then_some(resource.rounds),
            });
            w.state = WaveState::Grid;
            return false;
        }
    }
    true
}

/// The value of the first active lane.
fn first_active(w: &Wave, i: &Ins) -> u32 {
    let lane = w.exec64().trailing_zeros() as usize;
    match (&w.high, lane) {
        (Some(high), 32..) => high.v[usize::from(i.a.reg)].0[lane - 32],
        _ => w.v[usize::from(i.a.reg)].0[lane & 31],
    }
}

fn take(observer: &mut dyn Observer, w: &Wave, number: u8) {
    let released = observer.released_at(u64::from(number));
    observer.acquire_at(w.index, u64::from(number), released);
}

/// Lets those waves go on that have what they wait for. Whether there are any.
pub(crate) fn wake(waves: &mut [Box<Wave>], c: &mut Ctx<'_>) -> bool {
    let mut any = false;
    for w in waves.iter_mut().filter(|w| w.state == WaveState::Grid) {
        let (Some(ticket), Some(resources)) = (w.gws, &mut c.gws.resources) else {
            continue;
        };
        let resource = &mut resources[usize::from(ticket.resource)];
        match ticket.round {
            Some(round) if resource.rounds > round => {
                let mut observer = c.observer.borrow_mut();
                observer.acquire_at(w.index, u64::from(ticket.resource), resource.released);
            }
            None if resource.counter > 0 => {
                resource.counter -= 1;
                take(&mut *c.observer.borrow_mut(), w, ticket.resource);
            }
            _ => continue,
        }
        resource.waiting -= 1;
        w.gws = None;
        w.state = WaveState::Ready;
        any = true;
    }
    any
}
