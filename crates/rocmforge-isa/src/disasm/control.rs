//! Immediates with names: counters, delays, messages, hardware registers, swizzles.

use super::{List, Text};
use crate::Arch;
use crate::facts::Flow;
use crate::inst::Inst;
use crate::op::Op;
use crate::operand::{Operand, Ty};
use std::fmt;

pub(super) fn sopp(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let imm = u32::from(inst.imm as u16);
    match inst.op {
        Op::SWaitcnt => waitcnt(imm, out),
        Op::SWaitcntDepctr | Op::SWaitAlu => depctr(imm, out),
        Op::SDelayAlu => delay_alu(imm, out),
        Op::SSendmsg | Op::SSendmsghalt => write!(out, " {}", SendMsg(inst.arch, imm)),
        op if matches!(op.facts().flow, Flow::Branch | Flow::ConditionalBranch) => write!(out, " {imm}"),
        Op::SEndpgm if imm == 0 => Ok(()),
        Op::SEndpgm => write!(out, " {imm}"),
        Op::SWaitIdle
        | Op::SCodeEnd
        | Op::SEndpgmSaved
        | Op::SWakeup
        | Op::STtracedata
        | Op::SIcacheInv
        | Op::SBarrier
        | Op::SBarrierLeave => Ok(()),
        Op::SWaitLoadcnt
        | Op::SWaitStorecnt
        | Op::SWaitSamplecnt
        | Op::SWaitBvhcnt
        | Op::SWaitExpcnt
        | Op::SWaitDscnt
        | Op::SWaitKmcnt
        | Op::SWaitLoadcntDscnt
        | Op::SWaitStorecntDscnt
        | Op::SSingleuseVdst
        | Op::SSetInstPrefetchDistance
        | Op::SClause
        | Op::SWaitEvent
        | Op::SRoundMode
        | Op::STtracedataImm => {
            write!(out, " {imm:#x}")
        }
        _ if imm <= 64 => write!(out, " {imm}"),
        _ => write!(out, " {imm:#x}"),
    }
}

pub(super) fn sopk(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let imm = u32::from(inst.imm as u16);
    if inst.op == Op::SVersion {
        return version(imm, out);
    }
    let mut list = List::new(out);
    for (operand, ty) in [(inst.dst, inst.ty.dst), (inst.src[0], inst.ty.src[0])] {
        match operand {
            Operand::None => {}
            Operand::HwReg(code) => list.item(HwReg(inst.arch, code))?,
            _ => list.item(Text {
                operand,
                ty: if ty == Ty::None { Ty::B32 } else { ty },
                halves: false,
            })?,
        }
    }
    match inst.op {
        Op::SGetregB32 | Op::SSetregB32 | Op::SSetregImm32B32 => Ok(()),
        Op::SCallB64 | Op::SSubvectorLoopBegin | Op::SSubvectorLoopEnd => list.item(imm),
        _ => list.item(format_args!("{imm:#x}")),
    }
}

fn version(imm: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = match imm & 0xff {
        0 => "UC_VERSION_GFX7",
        4 => "UC_VERSION_GFX10",
        6 => "UC_VERSION_GFX11",
        9 => "UC_VERSION_GFX12",
        _ => "",
    };
    if imm & 0x1f00 != 0 {
        return write!(out, " {imm:#x}");
    }
    let mut text = if name.is_empty() {
        (imm & 0xff).to_string()
    } else {
        name.to_string()
    };
    let mut flags = 0;
    for (bit, flag) in [
        (0x2000, "UC_VERSION_W64_BIT"),
        (0x4000, "UC_VERSION_W32_BIT"),
        (0x8000, "UC_VERSION_MDP_BIT"),
    ] {
        if imm & bit != 0 {
            text = if flags > 0 {
                format!("({text})|{flag}")
            } else {
                format!("{text}|{flag}")
            };
            flags += 1;
        }
    }
    write!(out, " {text}")
}

fn waitcnt(imm: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let counters = [
        ("vmcnt", imm >> 10 & 63, 63),
        ("expcnt", imm & 7, 7),
        ("lgkmcnt", imm >> 4 & 63, 63),
    ];
    let all = counters.iter().all(|&(_, value, most)| value == most);
    for (name, value, most) in counters {
        if all || value != most {
            write!(out, " {name}({value})")?;
        }
    }
    Ok(())
}

fn depctr(imm: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    const DEFAULT: u32 = 0xff9f;
    if imm & 0x60 != 0 {
        return write!(out, " {imm:#x}");
    }
    let fields = [
        ("depctr_hold_cnt", 7, 1),
        ("depctr_sa_sdst", 0, 1),
        ("depctr_va_vdst", 12, 15),
        ("depctr_va_sdst", 9, 7),
        ("depctr_va_ssrc", 8, 1),
        ("depctr_va_vcc", 1, 1),
        ("depctr_vm_vsrc", 2, 7),
    ];
    for (name, shift, most) in fields {
        let value = imm >> shift & most;
        if imm == DEFAULT || value != most {
            write!(out, " {name}({value})")?;
        }
    }
    Ok(())
}

fn delay_alu(imm: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    const IDS: [&str; 12] = [
        "NO_DEP",
        "VALU_DEP_1",
        "VALU_DEP_2",
        "VALU_DEP_3",
        "VALU_DEP_4",
        "TRANS32_DEP_1",
        "TRANS32_DEP_2",
        "TRANS32_DEP_3",
        "FMA_ACCUM_CYCLE_1",
        "SALU_CYCLE_1",
        "SALU_CYCLE_2",
        "SALU_CYCLE_3",
    ];
    const SKIPS: [&str; 6] = ["SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
    let parts = [
        (
            "instid0",
            IDS.get(imm as usize & 15),
            imm & 15,
            "/* invalid instid value */",
        ),
        (
            "instskip",
            SKIPS.get(imm as usize >> 4 & 7),
            imm >> 4 & 7,
            "/* invalid instskip value */",
        ),
        (
            "instid1",
            IDS.get(imm as usize >> 7 & 15),
            imm >> 7 & 15,
            "/* invalid instid value */",
        ),
    ];
    let mut lead = " ";
    for (name, text, value, invalid) in parts {
        if value != 0 {
            write!(out, "{lead}{name}({})", text.unwrap_or(&invalid))?;
            lead = " | ";
        }
    }
    if lead == " " { out.write_str(" 0") } else { Ok(()) }
}

/// Message of `s_sendmsg`.
pub(super) struct SendMsg(pub(super) Arch, pub(super) u32);

impl fmt::Display for SendMsg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(arch, imm) = *self;
        let id = imm & 0xff;
        let name = match id {
            5 | 6 if arch == Arch::Gfx1201 => "",
            0x87 if arch == Arch::Gfx1201 => "MSG_RTN_GET_SE_AID_ID",
            1 => "MSG_INTERRUPT",
            2 => "MSG_HS_TESSFACTOR",
            3 => "MSG_DEALLOC_VGPRS",
            5 => "MSG_STALL_WAVE_GEN",
            6 => "MSG_HALT_WAVES",
            9 => "MSG_GS_ALLOC_REQ",
            0x80 => "MSG_RTN_GET_DOORBELL",
            0x81 => "MSG_RTN_GET_DDID",
            0x82 => "MSG_RTN_GET_TMA",
            0x83 => "MSG_RTN_GET_REALTIME",
            0x84 => "MSG_RTN_SAVE_WAVE",
            0x85 => "MSG_RTN_GET_TBA",
            0x86 => "MSG_RTN_GET_TBA_TO_PC",
            _ => "",
        };
        match name {
            "" if imm == id => write!(out, "sendmsg({id}, 0, 0)"),
            "" => write!(out, "{imm}"),
            name => write!(out, "sendmsg({name})"),
        }
    }
}

/// A field of a hardware register.
struct HwReg(Arch, u16);

impl fmt::Display for HwReg {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        hwreg(out, self.0, self.1)
    }
}

fn hwreg_name(arch: Arch, id: u16) -> &'static str {
    if arch == Arch::Gfx1201 {
        return match id {
            1 => "HW_REG_MODE",
            2 => "HW_REG_STATUS",
            4 => "HW_REG_STATE_PRIV",
            5 => "HW_REG_GPR_ALLOC",
            6 => "HW_REG_LDS_ALLOC",
            7 => "HW_REG_IB_STS",
            10 => "HW_REG_PERF_SNAPSHOT_DATA",
            11 => "HW_REG_PERF_SNAPSHOT_PC_LO",
            12 => "HW_REG_PERF_SNAPSHOT_PC_HI",
            15 => "HW_REG_PERF_SNAPSHOT_DATA1",
            16 => "HW_REG_PERF_SNAPSHOT_DATA2",
            17 => "HW_REG_EXCP_FLAG_PRIV",
            18 => "HW_REG_EXCP_FLAG_USER",
            19 => "HW_REG_TRAP_CTRL",
            20 => "HW_REG_SCRATCH_BASE_LO",
            21 => "HW_REG_SCRATCH_BASE_HI",
            23 => "HW_REG_HW_ID1",
            24 => "HW_REG_HW_ID2",
            29 => "HW_REG_SHADER_CYCLES_LO",
            30 => "HW_REG_SHADER_CYCLES_HI",
            31 => "HW_REG_DVGPR_ALLOC_LO",
            32 => "HW_REG_DVGPR_ALLOC_HI",
            _ => "",
        };
    }
    match id {
        1 => "HW_REG_MODE",
        2 => "HW_REG_STATUS",
        3 => "HW_REG_TRAPSTS",
        5 => "HW_REG_GPR_ALLOC",
        6 => "HW_REG_LDS_ALLOC",
        7 => "HW_REG_IB_STS",
        15 => "HW_REG_SH_MEM_BASES",
        18 => "HW_REG_PERF_SNAPSHOT_PC_LO",
        19 => "HW_REG_PERF_SNAPSHOT_PC_HI",
        20 => "HW_REG_FLAT_SCR_LO",
        21 => "HW_REG_FLAT_SCR_HI",
        23 => "HW_REG_HW_ID1",
        24 => "HW_REG_HW_ID2",
        27 => "HW_REG_PERF_SNAPSHOT_DATA",
        29 => "HW_REG_SHADER_CYCLES",
        _ => "",
    }
}

fn hwreg(out: &mut fmt::Formatter<'_>, arch: Arch, code: u16) -> fmt::Result {
    let (id, offset, size) = (code & 63, code >> 6 & 31, (code >> 11) + 1);
    out.write_str("hwreg(")?;
    match hwreg_name(arch, id) {
        "" => write!(out, "{id}")?,
        name => out.write_str(name)?,
    }
    if offset != 0 || size != 32 {
        write!(out, ", {offset}, {size}")?;
    }
    out.write_str(")")
}

/// The offset of `ds_swizzle_b32`, which is a pattern.
pub(super) fn swizzle(imm: u32, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if imm == 0 {
        return Ok(());
    }
    if imm & 0xff00 == 0x8000 {
        let lane = |at: u32| imm >> (2 * at) & 3;
        return write!(
            out,
            " offset:swizzle(QUAD_PERM,{},{},{},{})",
            lane(0),
            lane(1),
            lane(2),
            lane(3)
        );
    }
    if imm & 0x8000 != 0 {
        return write!(out, " offset:{imm}");
    }
    let (and, or, xor) = (imm & 31, imm >> 5 & 31, imm >> 10 & 31);
    if and == 31 && or == 0 && xor.is_power_of_two() {
        return write!(out, " offset:swizzle(SWAP,{xor})");
    }
    if and == 31 && or == 0 && xor > 0 && (xor + 1).is_power_of_two() {
        return write!(out, " offset:swizzle(REVERSE,{})", xor + 1);
    }
    let group = 32 - and;
    if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        return write!(out, " offset:swizzle(BROADCAST,{group},{or})");
    }
    out.write_str(" offset:swizzle(BITMASK_PERM,\"")?;
    for bit in (0..5).rev() {
        let of = |mask: u32| mask >> bit & 1;
        let (zero, one) = (of(or) ^ of(xor), (of(and) | of(or)) ^ of(xor));
        out.write_str(match (zero, one) {
            (0, 0) => "0",
            (1, 1) => "1",
            (0, _) => "p",
            _ => "i",
        })?;
    }
    out.write_str("\")")
}
