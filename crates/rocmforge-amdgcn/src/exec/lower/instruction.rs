//! From decoded to lowered instructions.

use crate::exec::code::Code;
use crate::exec::code::isa::plain;
use crate::exec::code::operands::{NOTHING, Refused, sgpr, source, vgpr};
use crate::exec::memory::form::Access;
use crate::exec::memory::{buffer, fence, form, gws, image, smem};
use crate::exec::scalar::Hardware;
use crate::exec::state::ctx::{Ins, Run};
use crate::exec::state::fields::{ABS, Flow, Kind, NEG, NEG_HI, SEL_HI, SEL_LO, Src};
use crate::exec::state::wave::EXEC;
use crate::exec::vector::{self, cross, lane_ops};
use crate::exec::{clock, gfx12, memory, scalar};
use rocmforge_isa::Arch;
use rocmforge_isa::{Format, Inst, Memory, Op, OpSel, Operand, Ty, Unit};

/// Lowers one instruction and appends the result, which is nothing for hints.
pub(crate) fn lower(inst: &Inst, pc: u64, code: &mut Code) -> Result<(), Refused> {
    let renamed;
    let read = inst.src.iter().zip(inst.ty.src);
    let read = read.map(|(operand, ty)| (*operand, ty)).chain(inst.image_sources());
    let read = read.fold(trap_registers(inst.mem.soffset, Ty::B32), |all, (operand, ty)| {
        all | trap_registers(operand, ty)
    });
    if read & !code.trap_registers != 0 {
        return Err("a register of the trap handler that nothing sets");
    }
    code.trap_registers |= trap_registers(inst.dst, inst.ty.dst);
    let inst = if inst.arch == Arch::Gfx1201 {
        renamed = gfx12::as_gfx11(inst);
        if let Some(done) = gfx12::lower(&renamed, code) {
            return done;
        }
        &renamed
    } else {
        inst
    };
    match inst.format {
        Format::Sopp => sopp(inst, code),
        Format::Sop1 | Format::Sop2 | Format::Sopc | Format::Sopk => scalar(inst, pc, code),
        Format::Smem => scalar_load(inst, code),
        Format::Vopd => dual(inst, code),
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3sd | Format::Vop3p => lanes(inst, code),
        Format::Ds | Format::Flat | Format::Global | Format::Scratch => memory(inst, code),
        Format::Image => {
            code.ins.push(image::lower(inst)?);
            Ok(())
        }
        Format::Mubuf => {
            code.ins.push(match inst.op {
                Op::BufferGl0Inv => Ins {
                    run: plain::<fence::Workgroup>(),
                    ..NOTHING
                },
                Op::BufferGl1Inv => Ins {
                    run: plain::<fence::Device>(),
                    ..NOTHING
                },
                _ => buffer::lower(inst)?,
            });
            Ok(())
        }
    }
}

/// Why an operation that has no handler is not executed.
fn unmodelled(op: Op) -> Refused {
    match op {
        Op::SSetkill | Op::SRfeB64 => "an operation of trap handlers and debuggers",
        Op::SSendmsg | Op::SSendmsghalt => "a message that nothing answers",
        Op::SSubvectorLoopBegin | Op::SSubvectorLoopEnd => "a loop over the halves of a wave",
        Op::DsBvhStackRtnB32 => "the stacks of ray tracing",
        Op::GlobalAtomicOrderedAddB64 => "an atomic that is done in the order of the waves",
        Op::GlobalLoadBlock | Op::GlobalStoreBlock | Op::ScratchLoadBlock | Op::ScratchStoreBlock => {
            "registers that a mask in m0 chooses"
        }
        _ => "an operation without a handler",
    }
}

/// The registers of the trap handler that an operand is: a bit for each.
fn trap_registers(operand: Operand, ty: Ty) -> u16 {
    match operand {
        Operand::Ttmp(first) => (((1u32 << ty.regs().max(1)) - 1) << first) as u16,
        _ => 0,
    }
}

fn sopp(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    let flow = match inst.op {
        Op::SBranch => Flow::Branch,
        Op::SCbranchScc0 => Flow::Scc0,
        Op::SCbranchScc1 => Flow::Scc1,
        Op::SCbranchVccz if code.wide => Flow::Vccz64,
        Op::SCbranchVccnz if code.wide => Flow::Vccnz64,
        Op::SCbranchExecz if code.wide => Flow::Execz64,
        Op::SCbranchExecnz if code.wide => Flow::Execnz64,
        Op::SCbranchVccz => Flow::Vccz,
        Op::SCbranchVccnz => Flow::Vccnz,
        Op::SCbranchExecz => Flow::Execz,
        Op::SCbranchExecnz => Flow::Execnz,
        Op::SBarrier => Flow::Barrier,
        Op::SEndpgm | Op::SEndpgmSaved => Flow::End,
        // s_sethalt ends the sequence that compilers emit around s_trap.
        Op::STrap | Op::SSethalt => Flow::Trap,
        Op::SCodeEnd => Flow::OffEnd,
        Op::SNop
        | Op::SDelayAlu
        | Op::SWaitcnt
        | Op::SWaitcntDepctr
        | Op::SWaitIdle
        | Op::SWaitEvent
        | Op::SClause
        | Op::SSetprio
        | Op::SSetInstPrefetchDistance
        | Op::SIcacheInv
        | Op::SWakeup
        | Op::STtracedata
        | Op::STtracedataImm
        | Op::SIncperflevel
        | Op::SDecperflevel => return Ok(()),
        Op::SSleep => {
            code.ins.push(Ins {
                run: plain::<clock::Sleep>(),
                imm: inst.imm & 0x7F,
                ..NOTHING
            });
            return Ok(());
        }
        // MSG_DEALLOC_VGPRS, which compilers put before the end, and MSG_INTERRUPT after a trap.
        Op::SSendmsg if matches!(inst.imm & 0xFFFF, 1 | 3) => return Ok(()),
        // No debugger is attached, so these go on.
        Op::SCbranchCdbgsys | Op::SCbranchCdbguser | Op::SCbranchCdbgsysOrUser | Op::SCbranchCdbgsysAndUser => {
            Flow::Next
        }
        Op::SDenormMode if code.modal || inst.imm & 15 != 15 => {
            set_mode(code, Src::constant((inst.imm & 15) as u64), 4, 4);
            return Ok(());
        }
        Op::SRoundMode if code.modal || inst.imm & 15 != 0 => {
            set_mode(code, Src::constant((inst.imm & 15) as u64), 0, 4);
            return Ok(());
        }
        Op::SDenormMode | Op::SRoundMode => return Ok(()),
        op => return Err(unmodelled(op)),
    };
    code.ins.push(Ins { flow, ..NOTHING });
    Ok(())
}

/// Appends a write of `width` bits of the `MODE` register from bit `offset` on.
fn set_mode(code: &mut Code, a: Src, offset: u32, width: u32) {
    code.changes_mode = true;
    code.ins.push(Ins {
        run: plain::<scalar::SetMode>(),
        a,
        imm: (offset | width << 8) as i32,
        ..NOTHING
    });
}

/// Reads and writes of hardware registers.
fn hardware_register(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    let (field, reads) = match (inst.dst, inst.src[0]) {
        (_, Operand::HwReg(field)) => (field, true),
        (Operand::HwReg(field), _) => (field, false),
        _ => return Err("an operand of this kind"),
    };
    let (id, offset, width) = (field & 63, u32::from(field >> 6 & 31), u32::from(field >> 11) + 1);
    if !reads {
        return match id {
            scalar::MODE => {
                let a = source(inst.src[0], Ty::B32)?;
                set_mode(code, a, offset, width);
                Ok(())
            }
            // Exceptions that were seen, which no one raises here.
            scalar::TRAPSTS if inst.arch == Arch::Gfx1100 => Ok(()),
            _ => Err("a write to a hardware register other than the mode"),
        };
    }
    let bits = u32::MAX >> (32 - width) << offset;
    code.ins.push(Ins {
        run: match scalar::hardware(inst.arch, id, bits)? {
            Hardware::Mode => plain::<scalar::GetMode>(),
            Hardware::Status => plain::<scalar::GetStatus>(),
            Hardware::Apertures => plain::<scalar::GetApertures>(),
            Hardware::Place => plain::<scalar::GetPlace>(),
            Hardware::Cycles => plain::<clock::Cycles>(),
            Hardware::CyclesHigh => plain::<clock::CyclesHigh>(),
        },
        dst: sgpr(inst.dst).ok_or("a destination of this kind")?,
        imm: (offset | width << 8) as i32,
        // Bits of the clock.
        target: match inst.arch {
            Arch::Gfx1100 => 0xF_FFFF,
            Arch::Gfx1201 => u32::MAX,
        },
        ..NOTHING
    });
    Ok(())
}

/// Numbers of messages that are answered: see LLVM's AMDGPU usage guide.
const MSG_RTN_GET_DOORBELL: i32 = 0x80;
const MSG_RTN_GET_DDID: i32 = 0x81;
const MSG_RTN_GET_REALTIME: i32 = 0x83;

fn scalar(inst: &Inst, pc: u64, code: &mut Code) -> Result<(), Refused> {
    if matches!(inst.op, Op::SGetregB32 | Op::SSetregB32 | Op::SSetregImm32B32) {
        return hardware_register(inst, code);
    }
    let dst = sgpr(inst.dst).ok_or("a destination of this kind")?;
    let next = code.device.wrapping_sub(code.start).wrapping_add(pc).wrapping_add(4);
    match inst.op {
        Op::SWaitcntVscnt if inst.imm == 0 => {
            let run = plain::<fence::Stores>();
            code.ins.push(Ins { run, ..NOTHING });
            return Ok(());
        }
        Op::SWaitcntExpcnt | Op::SWaitcntLgkmcnt | Op::SWaitcntVmcnt | Op::SWaitcntVscnt | Op::SVersion => {
            return Ok(());
        }
        Op::SGetpcB64 => {
            code.ins.push(Ins {
                run: plain::<scalar::Set64>(),
                a: Src::constant(next),
                dst,
                ..NOTHING
            });
            return Ok(());
        }
        Op::SSendmsgRtnB32 | Op::SSendmsgRtnB64 => {
            let wide = inst.op == Op::SSendmsgRtnB64;
            code.ins.push(match inst.imm {
                // Part of the sequence after a trap: there is no doorbell.
                MSG_RTN_GET_DOORBELL => Ins {
                    flow: Flow::Trap,
                    ..NOTHING
                },
                MSG_RTN_GET_DDID => Ins {
                    run: if wide {
                        plain::<scalar::Set64>()
                    } else {
                        plain::<scalar::Set32>()
                    },
                    dst,
                    ..NOTHING
                },
                MSG_RTN_GET_REALTIME => Ins {
                    run: if wide {
                        plain::<clock::Wall64>()
                    } else {
                        plain::<clock::Wall32>()
                    },
                    dst,
                    ..NOTHING
                },
                _ => return Err("a message that nothing answers"),
            });
            return Ok(());
        }
        Op::SSetpcB64 | Op::SSwappcB64 => {
            let a = source(inst.src[0], Ty::B64)?;
            code.ins.push(Ins {
                flow: Flow::SetPc,
                a,
                dst,
                ..NOTHING
            });
            return Ok(());
        }
        Op::SCallB64 => {
            code.ins.push(Ins {
                run: plain::<scalar::Set64>(),
                a: Src::constant(next),
                dst,
                ..NOTHING
            });
            code.ins.push(Ins {
                flow: Flow::Branch,
                ..NOTHING
            });
            return Ok(());
        }
        _ => {}
    }
    let run = scalar::lookup(inst.op).ok_or(unmodelled(inst.op))?;
    let (a, b) = match inst.format {
        Format::Sopk => {
            let register = if matches!(inst.src[0], Operand::None) {
                inst.dst
            } else {
                inst.src[0]
            };
            (source(register, Ty::B32)?, Src::constant(u64::from(inst.imm as u32)))
        }
        _ => (
            source(inst.src[0], inst.ty.src[0])?,
            source(inst.src[1], inst.ty.src[1])?,
        ),
    };
    code.ins.push(Ins {
        run,
        a,
        b,
        dst,
        ..NOTHING
    });
    Ok(())
}

fn scalar_load(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    // Invalidations and probes of caches.
    if inst.op.facts().memory == Memory::None {
        return Ok(());
    }
    let whole = smem::lookup(inst.op).map(|run| (run, Src::ZERO));
    let (run, c) = whole.or_else(|| gfx12::load::lookup(inst)).ok_or(unmodelled(inst.op))?;
    let dst = sgpr(inst.dst).ok_or("a destination of this kind")?;
    let (a, b) = (source(inst.src[0], Ty::B64)?, source(inst.src[1], Ty::B32)?);
    code.ins.push(Ins {
        run,
        a,
        b,
        c,
        dst,
        imm: inst.imm,
        ..NOTHING
    });
    Ok(())
}

/// Why it is not certain which half of a source an instruction reads.
fn ambiguous(inst: &Inst) -> Option<Refused> {
    let facts = inst.op.facts();
    let mods = &inst.mods;
    // AMD's guides have a line that lets `op_sel` choose halves of bytes and nibbles, and LLVM's authors read that it is ignored.
    let bytes = facts.unit == Unit::Dot && inst.ty.src[0] == Ty::Pk16;
    if bytes && (mods.op_sel & 3 != 0 || mods.op_sel_hi & 3 != 3) {
        return Some("halves of bytes or nibbles");
    }
    // LLVM 22 takes it for the high half of a lower one, LLVM 19 for itself.
    let above = matches!(inst.src[0], Operand::Vgpr(128..));
    if facts.op_sel == OpSel::SourcePair && inst.format == Format::Vop1 && above {
        return Some("a register above v127 in a short encoding");
    }
    None
}

/// Source `n` of a vector ALU instruction, a constant as the operation reads it.
fn numbered_source(inst: &Inst, n: usize) -> Result<Src, Refused> {
    let Some(bits) = inst.constant(n) else {
        return source(inst.src[n], inst.ty.src[n]);
    };
    // One table of AMD's guides says that it is a single, another part that it fills both halves; of LLVM's it is a half in the low one.
    let literal = matches!(inst.src[n], Operand::Literal(_));
    let disputed = inst.op == Op::VDot2F32F16 && n < 2 && !literal;
    if disputed && !matches!(inst.src[n], Operand::Int(0 | -1)) {
        return Err("an inline constant of which AMD and LLVM say different things");
    }
    Ok(Src::constant(bits))
}

/// Lowers a vector ALU instruction without its DPP part. The value of the register `kept` is read from the wave's temporary.
fn lane_ins(inst: &Inst, modal: bool, kept: Option<u8>) -> Result<Ins, Refused> {
    let mods = &inst.mods;
    let packed = inst.format == Format::Vop3p;
    // The accumulator of these is one single among packed operands.
    let single = inst.op.facts().unit == Unit::Dot && inst.ty.src[2] == Ty::F32;
    let mix = inst.op.facts().op_sel == OpSel::Mixed;
    let third_half = inst.op.facts().op_sel == OpSel::ThirdHalf;
    if let Some(reason) = ambiguous(inst) {
        return Err(reason);
    }
    let mut src = [Src::ZERO; 3];
    for (n, slot) in src.iter_mut().enumerate() {
        *slot = numbered_source(inst, n)?;
        let bit = |field: u8| field >> n & 1 != 0;
        if bit(mods.neg) {
            slot.mods |= NEG;
        }
        if mix {
            slot.shift = if bit(mods.op_sel) { 16 } else { 0 };
            slot.mods |= if bit(mods.op_sel_hi) { SEL_HI } else { 0 } | if bit(mods.neg_hi) { ABS } else { 0 };
        } else if packed {
            slot.mods |= if bit(mods.neg_hi) { NEG_HI } else { 0 }
                | if bit(mods.op_sel) { SEL_LO } else { 0 }
                | if bit(mods.op_sel_hi) { SEL_HI } else { 0 };
            if single && n == 2 && bit(mods.neg_hi) {
                slot.mods |= ABS;
            }
        } else if matches!(inst.ty.src[n], Ty::PkF16 | Ty::PkBf16) {
            // Packed operands of a format that does not tell their halves apart.
            if bit(mods.abs) {
                return Err("the absolute value of packed operands");
            }
            slot.mods |= SEL_HI | if bit(mods.neg) { NEG_HI } else { 0 };
        } else {
            if bit(mods.abs) {
                slot.mods |= ABS;
            }
            // The halves of registers are known already. Those of a literal are chosen as those of a scalar register; the high half of an
            // inline constant holds what is above its lower 16 bits.
            let chosen = slot.kind != Kind::V && (inst.ty.src[n].is_half() || third_half && n == 2);
            if chosen && bit(mods.op_sel) {
                slot.shift = 16;
            }
        }
    }
    let mut ins = Ins {
        clamp: mods.clamp,
        // In the default mode the hardware ignores it.
        target: u32::from(mods.omod),
        ..NOTHING
    };
    if inst.op.facts().scalar_result {
        ins.dst = sgpr(inst.dst).ok_or("a destination of this kind")?;
    } else if let Some((reg, half)) = vgpr(inst.dst) {
        (ins.dst, ins.half) = (reg, half);
    } else if inst.dst != Operand::None {
        return Err("a destination of this kind");
    }
    ins.sdst = sgpr(inst.sdst).ok_or("a second destination of this kind")?;
    if inst.op.accumulates() {
        src[2] = Src {
            shift: ins.half,
            mods: SEL_HI,
            ..Src::reg(Kind::V, ins.dst)
        };
    }
    if inst.op == Op::VFmaMixhiF16 {
        ins.half = 16;
    }
    ins.imm = match inst.op.facts().op_sel {
        OpSel::Options => i32::from(mods.op_sel & 3),
        OpSel::SourcePair => i32::from(mods.op_sel & 1),
        OpSel::SourceByte | OpSel::DestinationByte => inst.op.fp8_byte(mods.op_sel).unwrap_or(0).into(),
        OpSel::Halves | OpSel::Mixed | OpSel::ThirdHalf => 0,
    };
    for slot in &mut src {
        if slot.kind == Kind::V && Some(slot.reg) == kept {
            slot.kind = Kind::T;
        }
    }
    [ins.a, ins.b, ins.c] = src;
    let mut kinds = src.map(|operand| operand.kind);
    if inst.mods.dpp.is_some() {
        // The DPP part leaves it there.
        kinds[0] = Kind::T;
    }
    // Packed and mixed operands apply their modifiers themselves, apart from clamping.
    let any =
        mods.clamp || (!packed && (mods.neg | mods.abs) & 7 != 0) || (single && (mods.neg | mods.neg_hi) & 4 != 0);
    let form = lane_ops::Form {
        mods: any,
        modal,
        kinds,
    };
    let apart = cross::lookup(inst.op, modal).or_else(|| gfx12::lanes::lookup(inst.op));
    let apart = match apart {
        None if third_half && ins.c.shift != 0 => vector::third_half(inst.op, form),
        other => other,
    };
    ins.run = match apart {
        Some(run) => run,
        None => vector::lookup(inst.op, form, mods.clamp).ok_or(if any {
            "these modifiers"
        } else {
            unmodelled(inst.op)
        })?,
    };
    Ok(ins)
}

fn lanes(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    if matches!(inst.op, Op::VNop | Op::VPipeflush | Op::VPermlane64B32) {
        // In a wave of 32, v_permlane64 does nothing.
        return Ok(());
    }
    let matrix_of = match inst.arch {
        Arch::Gfx1100 => crate::exec::matrix::lookup,
        Arch::Gfx1201 => gfx12::matrix::lookup,
    };
    if let Some(run) = matrix_of(inst.op) {
        return matrix(inst, run, code);
    }
    let mut ins = lane_ins(inst, code.modal, None)?;
    let Some(dpp) = &inst.mods.dpp else {
        code.ins.push(ins);
        return Ok(());
    };
    if cross::lookup(inst.op, code.modal).is_some() && inst.op != Op::VMovreldB32 {
        return Err("a DPP control of this operation");
    }
    // A compare that writes `exec` ends with the lanes that the pattern left it and that passed.
    let writes_exec = ins.sdst as usize == EXEC;
    let (run, imm, target) = cross::dpp(dpp);
    let plain_source = Src {
        mods: 0,
        shift: 0,
        ..ins.a
    };
    code.ins.push(Ins {
        run,
        a: plain_source,
        imm,
        target,
        ..NOTHING
    });
    ins.a.kind = Kind::T;
    code.ins.push(ins);
    if !writes_exec {
        code.ins.push(Ins {
            run: plain::<cross::Restore>(),
            ..NOTHING
        });
    }
    Ok(())
}

fn matrix(inst: &Inst, run: Run, code: &mut Code) -> Result<(), Refused> {
    let mut ins = lane_ins_matrix(inst)?;
    ins.run = run;
    code.ins.push(ins);
    Ok(())
}

/// Operands of a matrix instruction: whole register groups, with packed modifiers in `imm`.
fn lane_ins_matrix(inst: &Inst) -> Result<Ins, Refused> {
    let mut ins = Ins {
        clamp: inst.mods.clamp,
        ..NOTHING
    };
    (ins.dst, _) = vgpr(inst.dst).ok_or("a destination of this kind")?;
    [ins.a, ins.b, ins.c] = [
        numbered_source(inst, 0)?,
        numbered_source(inst, 1)?,
        numbered_source(inst, 2)?,
    ];
    if ins.a.kind != Kind::V || ins.b.kind != Kind::V {
        return Err("a matrix operand that is no register");
    }
    ins.imm = i32::from(inst.mods.neg) | i32::from(inst.mods.neg_hi) << 8;
    ins.half = if inst.mods.op_sel & 4 != 0 { 16 } else { 0 };
    ins.target = u32::from(inst.mods.op_sel) | gfx12::matrix::number(inst.op);
    Ok(ins)
}

/// Both halves of a pair read before either writes: where one would see the other's result, a register is kept aside.
fn dual(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    let other = inst.dual.as_deref().ok_or("a pair without a second half")?;
    let x = lane_ins(inst, code.modal, None)?;
    let y = lane_ins(other, code.modal, Some(x.dst))?;
    let kept = [y.a, y.b, y.c].iter().any(|slot| slot.kind == Kind::T);
    if kept {
        let a = Src::reg(Kind::V, x.dst);
        code.ins.push(Ins {
            run: crate::exec::code::isa::vector::<cross::Save>(),
            a,
            ..NOTHING
        });
    }
    code.ins.push(x);
    code.ins.push(y);
    Ok(())
}

fn memory(inst: &Inst, code: &mut Code) -> Result<(), Refused> {
    if let Some(done) = gws::lower(inst, code) {
        return done;
    }
    if inst.mem.gds {
        return Err("the global data share");
    }
    if inst.op == Op::DsNop {
        return Ok(());
    }
    // DS keeps its second data operand where the others keep their base.
    let ds = inst.format == Format::Ds;
    let scalar_base = !ds && !matches!(inst.src[2], Operand::None | Operand::Null);
    let mut ins = Ins {
        imm: inst.imm,
        ..NOTHING
    };
    ins.a = source(inst.src[0], Ty::B32)?;
    ins.b = source(inst.src[1], Ty::B32)?;
    ins.c = source(
        inst.src[2],
        if ds || inst.format == Format::Scratch {
            Ty::B32
        } else {
            Ty::B64
        },
    )?;
    if let Some((reg, _)) = vgpr(inst.dst) {
        ins.dst = reg;
        ins.sdst = form::RETURN;
    } else {
        ins.sdst = 0;
    }
    form::describe(inst.op, &mut ins);
    let has_data = |src: &Src| {
        if src.kind == Kind::V {
            Ok(())
        } else {
            Err("a data operand of this kind")
        }
    };
    match memory::lookup(inst, scalar_base).ok_or(unmodelled(inst.op))? {
        Access::Load(run) => {
            ins.run = run;
            ins.half = form::coherence_of_load(inst.mem);
            if ins.sdst == 0 {
                return Err("a load without a destination");
            }
        }
        Access::Store(run) | Access::Atomic(run) => {
            has_data(&ins.b)?;
            ins.run = run;
            ins.half = form::coherence_of_store(inst.mem);
        }
        Access::Ds(run) => {
            ins.run = run;
            if ins.c.kind == Kind::V {
                ins.sdst |= form::SECOND;
            }
            if inst.op.facts().two_offsets {
                let unit = u32::from(inst.op.facts().offset_unit);
                ins.imm = inst.imm.wrapping_mul(unit as i32);
                ins.target = u32::from(inst.mem.offset1)
                    .wrapping_mul(unit)
                    .wrapping_sub(ins.imm as u32);
            }
        }
    }
    code.ins.push(ins);
    Ok(())
}
