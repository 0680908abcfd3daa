//! Text of loads, stores and samples of images.

use super::{List, cache_bits, gfx12};
use crate::Arch;
use crate::inst::{Image, Inst};
use crate::operand::{Operand, Ty};
use std::fmt;

pub(super) fn image(inst: &Inst, image: &Image, out: &mut fmt::Formatter<'_>) -> fmt::Result {
    let apart = image.separate > 1;
    // So LLVM 19 has it.
    if inst.arch == Arch::Gfx1100 && apart && image.sampler != Operand::None {
        out.write_str(" ")?;
    }
    let mut list = List::new(out);
    match inst.src[1] {
        Operand::None => list.operand(inst.dst, inst.ty.dst)?,
        data => list.operand(data, inst.ty.src[1])?,
    }
    list.item(Address(image))?;
    list.operand(inst.src[2], Ty::B256)?;
    list.operand(image.sampler, Ty::B128)?;
    write!(
        out,
        " dmask:{:#x} dim:SQ_RSRC_IMG_{}",
        image.parts,
        image.dimensions.text()
    )?;
    out.write_str(if image.unnormalised { " unorm" } else { "" })?;
    match inst.arch {
        Arch::Gfx1100 => cache_bits(inst, out),
        Arch::Gfx1201 => gfx12::cache_policy(inst, out),
    }
}

/// Registers of an address: each by itself in brackets, or a group.
struct Address<'a>(&'a Image);

impl fmt::Display for Address<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Image { address, separate, .. } = self.0;
        let (single, group) = address.split_at(separate.saturating_sub(1));
        let bracket = |text| if *separate > 1 { text } else { "" };
        out.write_str(bracket("["))?;
        for register in single {
            write!(out, "v{register}, ")?;
        }
        match group {
            [one] => write!(out, "v{one}")?,
            [first, .., last] => write!(out, "v[{first}:{last}]")?,
            [] => {}
        }
        out.write_str(bracket("]"))
    }
}
