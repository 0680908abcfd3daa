//! Text of instructions, equal to that of `llvm-objdump-19 -d` for gfx1100 and gfx1201.
//!
//! One thing differs, because LLVM 19 loses it: a 16-bit operation that reads or writes the high half of a register is
//! written with `.l` and `.h`, as later versions do.

mod buffer;
mod control;
mod gfx12;
mod image;
mod operand;

use crate::Arch;
use crate::facts::OpSel;
use crate::inst::{Dpp, DppCtrl, Format, Inst};
use crate::op::Op;
use crate::operand::{Operand, Ty};
use crate::row::Suffix;
use std::fmt;

pub(crate) use operand::Text;

impl fmt::Display for Inst {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_half(self, out)?;
        match &self.dual {
            Some(y) => {
                out.write_str(" :: ")?;
                write_half(y, out)
            }
            None => Ok(()),
        }
    }
}

fn write_half(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    mnemonic(inst, out)?;
    match inst.format {
        Format::Sopp => control::sopp(inst, out),
        Format::Sopk => control::sopk(inst, out),
        Format::Sop1 | Format::Sop2 | Format::Sopc => scalar(inst, out),
        Format::Smem => smem(inst, out),
        Format::Ds => ds(inst, out),
        Format::Flat | Format::Global | Format::Scratch => flat(inst, out),
        Format::Mubuf => buffer::buffer(inst, out),
        Format::Image => inst
            .image
            .as_ref()
            .map_or(Ok(()), |image| image::image(inst, image, out)),
        _ => vector(inst, out),
    }
}

fn mnemonic(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = inst.op.mnemonic();
    if inst.format == Format::Vopd {
        return write!(out, "v_dual_{}", name.strip_prefix("v_").unwrap_or(name));
    }
    out.write_str(name)?;
    let suffix = if inst.mods.dpp.is_some() {
        inst.row.dpp_suffix
    } else {
        inst.row.suffix
    };
    out.write_str(match suffix {
        Suffix::None => "",
        Suffix::E32 => "_e32",
        Suffix::E64 => "_e64",
        Suffix::Dpp => "_dpp",
        Suffix::E64Dpp => "_e64_dpp",
    })
}

/// Writes operands with a space before the first and commas between.
pub(crate) struct List<'a, 'b> {
    out: &'a mut fmt::Formatter<'b>,
    first: bool,
}

impl<'a, 'b> List<'a, 'b> {
    pub(crate) fn new(out: &'a mut fmt::Formatter<'b>) -> Self {
        List { out, first: true }
    }

    pub(crate) fn item(&mut self, item: impl fmt::Display) -> fmt::Result {
        let lead = if self.first { " " } else { ", " };
        self.first = false;
        write!(self.out, "{lead}{item}")
    }

    fn operand(&mut self, operand: Operand, ty: Ty) -> fmt::Result {
        match operand {
            Operand::None => Ok(()),
            _ => self.item(Text {
                operand,
                ty,
                halves: false,
            }),
        }
    }
}

fn scalar(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut list = List::new(out);
    list.operand(inst.dst, inst.ty.dst)?;
    if matches!(inst.op, Op::SSendmsgRtnB32 | Op::SSendmsgRtnB64) {
        return list.item(control::SendMsg(inst.arch, inst.imm as u32));
    }
    for (index, (&operand, ty)) in inst.src.iter().zip(inst.ty.src).enumerate() {
        match operand {
            Operand::Literal(_) if inst.has_fixed_literal(index) => list.item(operand::fixed_literal(operand))?,
            // LLVM takes the sources of these for 32 bits.
            _ if inst.format == Format::Sop1 && ty == Ty::F16 => list.operand(operand, Ty::F32)?,
            _ => list.operand(operand, ty)?,
        }
    }
    Ok(())
}

fn smem(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    if inst.arch == Arch::Gfx1201 {
        return gfx12::smem(inst, out);
    }
    if inst.dst == Operand::None {
        return Ok(());
    }
    let mut list = List::new(out);
    list.operand(inst.dst, inst.ty.dst)?;
    list.operand(inst.src[0], inst.ty.src[0])?;
    let sign = if inst.imm < 0 { "-" } else { "" };
    let size = inst.imm.unsigned_abs();
    if inst.src[1] == Operand::Null && size != 0 {
        list.item(format_args!("{sign}{size:#x}"))?;
    } else {
        list.operand(inst.src[1], Ty::B32)?;
        if size != 0 {
            write!(out, " offset:{sign}{size:#x}")?;
        }
    }
    cache_bits(inst, out)
}

fn cache_bits(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (set, text) in [(inst.mem.glc, " glc"), (inst.mem.slc, " slc"), (inst.mem.dlc, " dlc")] {
        if set {
            out.write_str(text)?;
        }
    }
    Ok(())
}

fn ds(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut list = List::new(out);
    list.operand(inst.dst, inst.ty.dst)?;
    for (&operand, ty) in inst.src.iter().zip(inst.ty.src) {
        list.operand(operand, ty)?;
    }
    if inst.op == Op::DsSwizzleB32 {
        control::swizzle(inst.imm as u32, out)?;
    } else if inst.op.facts().two_offsets {
        for (name, offset) in [("offset0", inst.imm), ("offset1", i32::from(inst.mem.offset1))] {
            if offset != 0 {
                write!(out, " {name}:{offset}")?;
            }
        }
    } else if inst.imm != 0 {
        write!(out, " offset:{}", inst.imm)?;
    }
    out.write_str(if inst.mem.gds { " gds" } else { "" })
}

fn flat(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut list = List::new(out);
    list.operand(inst.dst, inst.ty.dst)?;
    if inst.op.is_cache_operation() {
        return gfx12::cache_policy(inst, out);
    }
    if inst.src[0] == Operand::None && inst.format == Format::Scratch {
        list.item("off")?;
    }
    list.operand(inst.src[0], inst.ty.src[0])?;
    list.operand(inst.src[1], inst.ty.src[1])?;
    if inst.format != Format::Flat {
        match inst.src[2] {
            Operand::None => list.item("off")?,
            operand => list.operand(operand, inst.ty.src[2])?,
        }
    }
    if inst.imm != 0 {
        write!(out, " offset:{}", inst.imm)?;
    }
    match inst.arch {
        Arch::Gfx1100 => cache_bits(inst, out),
        Arch::Gfx1201 => gfx12::cache_policy(inst, out),
    }
}

fn is_mix(inst: &Inst) -> bool {
    inst.op.facts().op_sel == OpSel::Mixed
}

fn vector(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let short = matches!(inst.format, Format::Vop1 | Format::Vop2 | Format::Vopc);
    let third_half = inst.op.facts().op_sel == OpSel::ThirdHalf;
    let halves = matches!(inst.op, Op::VMovB16 | Op::VSwapB16)
        || third_half && matches!(inst.src[2], Operand::VgprHalf { .. })
        || inst.mods.op_sel != 0 && inst.row.has_half() && (short || inst.row.hides_op_sel());
    let packed = inst.format == Format::Vop3p && !is_mix(inst);
    let (neg, abs) = match inst.format {
        Format::Vop3p if packed => (0, 0),
        Format::Vop3p => (inst.mods.neg, inst.mods.neg_hi),
        _ => (inst.mods.neg, inst.mods.abs),
    };
    let mut list = List::new(out);
    if inst.dst != Operand::None {
        list.item(Text {
            operand: inst.dst,
            ty: inst.ty.dst,
            halves,
        })?;
    }
    if inst.sdst != Operand::ExecLo || !inst.op.is_exec_compare() {
        list.operand(inst.sdst, Ty::B32)?;
    }
    for (index, (&operand, ty)) in inst.src.iter().zip(inst.ty.src).enumerate() {
        if operand == Operand::None || (inst.format == Format::Vopd && ty == Ty::Mask) {
            continue;
        }
        let ty = text_type(inst.op, index, operand, ty);
        let text = Text { operand, ty, halves };
        let constant = matches!(operand, Operand::Int(_) | Operand::Float(_) | Operand::Literal(_));
        let fixed = constant && inst.has_fixed_literal(index);
        let (negated, absolute) = (neg >> index & 1 != 0, abs >> index & 1 != 0);
        match (negated, absolute) {
            _ if fixed => list.item(operand::fixed_literal(operand))?,
            (false, false) => list.item(text)?,
            (true, false) if constant => list.item(format_args!("neg({text})"))?,
            (true, false) => list.item(format_args!("-{text}"))?,
            (_, true) if gfx12::late_bar(inst, index) => {
                list.item(format_args!("{}|{text}", if negated { "-" } else { "" }))?;
                list.item("vcc_lo|")?;
                break;
            }
            (false, true) => list.item(format_args!("|{text}|"))?,
            (true, true) => list.item(format_args!("-|{text}|"))?,
        }
    }
    modifiers(inst, out)
}

/// Kind as which LLVM writes an operand, where it is not the one that it has.
fn text_type(op: Op, index: usize, operand: Operand, ty: Ty) -> Ty {
    let literal = matches!(operand, Operand::Literal(_));
    match op {
        _ if op.facts().op_sel == OpSel::Mixed && literal => Ty::F16,
        Op::VCmpClassF16 | Op::VCmpxClassF16 if index == 1 && literal => Ty::B32,
        Op::VLdexpF16 | Op::VCmpClassF16 | Op::VCmpxClassF16 if index == 1 => Ty::F16,
        _ => ty,
    }
}

impl Inst {
    /// True for the literal that `v_fmaak_*`, `v_fmamk_*` and their scalar kin always have.
    fn has_fixed_literal(&self, index: usize) -> bool {
        self.op.facts().literal.map(usize::from) == Some(index)
    }
}

fn modifiers(inst: &Inst, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mods = &inst.mods;
    let sources = inst.src.iter().filter(|&&operand| operand != Operand::None).count() as u32;
    let all = (1u8 << sources) - 1;
    if inst.format == Format::Vop3p {
        if gfx12::is_sparse(inst.op) {
            out.write_str(if mods.op_sel & 1 != 0 { " index_key:1" } else { "" })?;
        } else {
            mask(out, "op_sel", mods.op_sel & all, 0, sources)?;
        }
        let default = if is_mix(inst) { 0 } else { all };
        mask(out, "op_sel_hi", mods.op_sel_hi & all, default, sources)?;
        if !is_mix(inst) {
            mask(out, "neg_lo", mods.neg & all, 0, sources)?;
            mask(out, "neg_hi", mods.neg_hi & all, 0, sources)?;
        }
    } else if inst.format == Format::Vop3 && mods.op_sel != 0 && !inst.row.hides_op_sel() {
        if inst.op.facts().op_sel == OpSel::ThirdHalf {
            // The register's name has it.
        } else if inst.op.facts().op_sel == OpSel::Options {
            mask(out, "op_sel", mods.op_sel, 0, 2)?;
        } else if let Some(byte) = gfx12::byte(inst) {
            write!(
                out,
                "{}",
                if byte == 0 {
                    String::new()
                } else {
                    format!(" byte_sel:{byte}")
                }
            )?;
        } else {
            // `v_fmac_f16` has a third source, its destination, which has a bit of its own.
            let sources = if inst.op.accumulates() { 3 } else { sources };
            let value = mods.op_sel & all | (mods.op_sel >> 3 & 1) << sources;
            mask(out, "op_sel", value, 0, sources + u32::from(inst.dst != Operand::None))?;
        }
    }
    if mods.clamp {
        out.write_str(" clamp")?;
    }
    out.write_str(match mods.omod {
        1 => " mul:2",
        2 => " mul:4",
        3 => " div:2",
        _ => "",
    })?;
    match &mods.dpp {
        Some(control) => dpp(control, out),
        None => Ok(()),
    }
}

fn mask(out: &mut fmt::Formatter<'_>, name: &str, value: u8, default: u8, width: u32) -> fmt::Result {
    if value == default {
        return Ok(());
    }
    write!(out, " {name}:[")?;
    for bit in 0..width {
        write!(out, "{}{}", if bit > 0 { "," } else { "" }, value >> bit & 1)?;
    }
    out.write_str("]")
}

fn dpp(control: &Dpp, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let fetch_inactive = match control {
        Dpp::Dpp8 { lanes, fetch_inactive } => {
            out.write_str(" dpp8:")?;
            brackets(out, lanes)?;
            *fetch_inactive
        }
        Dpp::Dpp16 {
            ctrl,
            row_mask,
            bank_mask,
            bound_ctrl,
            fetch_inactive,
        } => {
            match ctrl {
                DppCtrl::QuadPerm(lanes) => {
                    out.write_str(" quad_perm:")?;
                    brackets(out, lanes)?;
                }
                DppCtrl::RowShl(count) => write!(out, " row_shl:{count}")?,
                DppCtrl::RowShr(count) => write!(out, " row_shr:{count}")?,
                DppCtrl::RowRor(count) => write!(out, " row_ror:{count}")?,
                DppCtrl::RowMirror => out.write_str(" row_mirror")?,
                DppCtrl::RowHalfMirror => out.write_str(" row_half_mirror")?,
                DppCtrl::RowShare(lane) => write!(out, " row_share:{lane}")?,
                DppCtrl::RowXmask(mask) => write!(out, " row_xmask:{mask}")?,
            }
            write!(out, " row_mask:{row_mask:#x} bank_mask:{bank_mask:#x}")?;
            out.write_str(if *bound_ctrl { " bound_ctrl:1" } else { "" })?;
            *fetch_inactive
        }
    };
    out.write_str(if fetch_inactive { " fi:1" } else { "" })
}

fn brackets(out: &mut fmt::Formatter<'_>, values: &[u8]) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        write!(out, "{}{value}", if index == 0 { "[" } else { "," })?;
    }
    out.write_str("]")
}
