//! Instructions of gfx1201 that gfx1100 does not have: scalar floating point, IEEE 754-2019 minima, split barriers, FP8, its
//! matrix layouts, and loads and atomics of its own. What only has another name is executed under its gfx1100 one.

pub(crate) mod barrier;
mod fp8;
pub(crate) mod lanes;
pub(crate) mod load;
pub(crate) mod matrix;
mod scalar;
pub(crate) mod vector;

use crate::exec::code::Code;
use crate::exec::code::isa::plain;
use crate::exec::code::operands::{NOTHING, Refused, sgpr};
use crate::exec::memory::fence;
use crate::exec::state::ctx::Ins;
use crate::exec::state::fields::Kind;
use rocmforge_isa::{Inst, Memory, Op};

/// The instruction under the name, and with the cache bits, that gfx1100 has for the same.
pub(crate) fn as_gfx11(inst: &Inst) -> Inst {
    let mut other = inst.clone();
    other.op = renamed(inst.op);
    if let Some(dual) = &mut other.dual {
        dual.op = renamed(dual.op);
    }
    let scope = inst.mem.scope;
    match inst.op.facts().memory {
        Memory::Store => other.mem.dlc = scope >= DEVICE,
        Memory::Atomic => {}
        _ => (other.mem.glc, other.mem.dlc) = (scope >= ENGINE, scope > DEVICE),
    }
    other
}

/// Scope of a shader engine, which atomic loads of a workgroup have.
const ENGINE: u8 = 1;
/// Scope of the device; the system's is one more.
const DEVICE: u8 = 2;

/// Lowers what only gfx1201 has, apart from vector arithmetic; `None` for all others.
pub(crate) fn lower(inst: &Inst, code: &mut Code) -> Option<Result<(), Refused>> {
    order(inst, code)
        .or_else(|| barrier::lower(inst, code))
        .or_else(|| scalar::lower(inst, code))
}

/// Whether an instruction extends the sign of the 48 bits of an address that `s_getpc_b64` has just given, as compilers
/// do it: addresses of the simulated device use all 48, without a sign.
fn extends_pc(inst: &Inst, code: &Code) -> bool {
    let (Some(before), Some(high)) = (code.ins.last(), sgpr(inst.dst)) else {
        return false;
    };
    let is_pc = before.a.kind == Kind::C && u64::from(before.a.up) == code.device >> 32;
    inst.dst == inst.src[0] && is_pc && before.dst.checked_add(1) == Some(high)
}

/// Lowers waits, hints and cache operations that only gfx1201 has; `None` for all others.
fn order(inst: &Inst, code: &mut Code) -> Option<Result<(), Refused>> {
    let run = match inst.op {
        // What waits for stores, all of them.
        Op::SWaitStorecnt if inst.imm == 0 => plain::<fence::Stores>(),
        Op::SWaitStorecntDscnt if inst.imm >> 8 & 63 == 0 => plain::<fence::Stores>(),
        Op::GlobalInv if inst.mem.scope < DEVICE => plain::<fence::Workgroup>(),
        Op::GlobalInv => plain::<fence::Device>(),
        Op::SSextI32I16 if extends_pc(inst, code) => return Some(Ok(())),
        Op::GlobalWb
        | Op::GlobalWbinv
        | Op::SWaitLoadcnt
        | Op::SWaitStorecnt
        | Op::SWaitSamplecnt
        | Op::SWaitBvhcnt
        | Op::SWaitExpcnt
        | Op::SWaitDscnt
        | Op::SWaitKmcnt
        | Op::SWaitLoadcntDscnt
        | Op::SWaitStorecntDscnt
        | Op::SWaitAlu
        | Op::SSingleuseVdst
        | Op::SSleepVar
        | Op::SPrefetchInst
        | Op::SPrefetchInstPcRel
        | Op::SPrefetchData
        | Op::SPrefetchDataPcRel
        | Op::SBufferPrefetchData => return Some(Ok(())),
        _ => return None,
    };
    code.ins.push(Ins { run, ..NOTHING });
    Some(Ok(()))
}

fn renamed(op: Op) -> Op {
    match op {
        Op::SAddCoU32 => Op::SAddU32,
        Op::SSubCoU32 => Op::SSubU32,
        Op::SAddCoI32 => Op::SAddI32,
        Op::SSubCoI32 => Op::SSubI32,
        Op::SAddCoCiU32 => Op::SAddcU32,
        Op::SSubCoCiU32 => Op::SSubbU32,
        Op::SAddkCoI32 => Op::SAddkI32,
        Op::VMadCoU64U32 => Op::VMadU64U32,
        Op::VMadCoI64I32 => Op::VMadI64I32,
        other => other,
    }
}
