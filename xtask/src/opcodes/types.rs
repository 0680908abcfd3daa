//! Kinds of operands: register counts come from LLVM's text, the meaning of the bits from the mnemonic. LLVM's descriptions state
//! that of most sources too, in less detail, and must agree.

use super::classes::{Class, DST, Fields, SRC, registers};
use super::facts::Description;

/// Names of `Ty` variants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Types {
    pub(crate) dst: &'static str,
    pub(crate) sdst: &'static str,
    pub(crate) src: [&'static str; 3],
}

impl Types {
    /// The register field of SOPK is a source of the operations that only read it.
    pub(crate) fn reads_first(&mut self, description: &Description, class: &Class) {
        if class.name == "SOPK" && description.source {
            (self.dst, self.src[0]) = ("None", "B32");
        }
    }

    /// Compares the sources of a vector operation with what LLVM says of them.
    pub(crate) fn agree(&self, description: &Description, class: &Class, mnemonic: &str) -> Result<(), String> {
        if !matches!(class.name, "VOP1" | "VOP2" | "VOPC" | "VOP3" | "VOP3P") {
            return Ok(());
        }
        let stated = description.kinds.iter().filter(|kind| **kind != Some(MODIFIERS));
        let sources = self.src.iter().filter(|&&kind| kind != "None");
        for (position, (kind, stated)) in sources.zip(stated).enumerate() {
            let Some(stated) = stated else { continue };
            // Of matrices it tells the kind of an element.
            let matrix = regs(kind) > 2;
            let agrees = match STATED.iter().find(|(number, _)| number == stated) {
                Some((_, kinds)) => kinds.contains(kind),
                // Mixed operands, and literals that are not in the place of a source.
                None => matches!(class.name, "VOP3P" | "VOP2"),
            };
            if !agrees && !matrix && !DISAGREE.contains(&(mnemonic, position)) {
                return Err(format!(
                    "{mnemonic}: source {position} is {kind}, but {stated} of LLVM's `OperandType`"
                ));
            }
        }
        Ok(())
    }
}

/// `AMDGPU::OperandType` of LLVM 19: what a source holds, and the kinds of ours that this may be. Integers of 32 bits are also those
/// whose bytes are multiplied.
const STATED: &[(u32, &[&str])] = &[
    (0, &["B32", "Pk16"]),
    (1, &["B64", "I64"]),
    (2, &["B16"]),
    (3, &["F32"]),
    (4, &["F64"]),
    (5, &["Bf16"]),
    (6, &["F16"]),
    (10, &["PkBf16"]),
    (11, &["PkF16"]),
    (12, &["Pk16"]),
    // As the first one, but no literal.
    (16, &["B32"]),
];

/// The one of modifiers of a source.
const MODIFIERS: u32 = 41;

/// Sources of which LLVM says something else, by how it prints their constants.
const DISAGREE: &[(&str, usize)] = &[
    ("v_ldexp_f16", 1),
    ("v_cmp_class_f16", 1),
    ("v_cmpx_class_f16", 1),
    ("v_cndmask_b32", 0),
    ("v_cndmask_b32", 1),
];

/// Operations whose operands are not what the last token of their name says: destination, then sources.
const SPECIAL: &[(&str, &[&str])] = &[
    ("v_sat_pk_u8_i16", &["B16", "Pk16"]),
    ("v_pack_b32_f16", &["B32", "F16", "F16"]),
    ("v_mad_i32_i16", &["B32", "B16", "B16", "B32"]),
    ("v_mad_u32_u16", &["B32", "B16", "B16", "B32"]),
    ("v_dot2_f32_f16", &["F32", "PkF16", "PkF16", "F32"]),
    ("v_dot2_f32_bf16", &["F32", "PkBf16", "PkBf16", "F32"]),
    ("v_dot2acc_f32_f16", &["F32", "PkF16", "PkF16"]),
    ("v_dot2_f16_f16", &["F16", "PkF16", "PkF16", "F16"]),
    ("v_dot2_bf16_bf16", &["Bf16", "PkBf16", "PkBf16", "Bf16"]),
    ("v_fma_mix_f32", &["F32", "F32", "F32", "F32"]),
    ("v_fma_mixlo_f16", &["B32", "F32", "F32", "F32"]),
    ("v_fma_mixhi_f16", &["B32", "F32", "F32", "F32"]),
    ("v_ldexp_f16", &["F16", "F16", "B16"]),
    ("v_ldexp_f32", &["F32", "F32", "B32"]),
    ("v_ldexp_f64", &["F64", "F64", "B32"]),
    ("v_cvt_pk_u8_f32", &["B32", "F32", "B32", "B32"]),
    ("v_mad_u64_u32", &["B64", "B32", "B32", "B64"]),
    ("v_mad_i64_i32", &["I64", "B32", "B32", "I64"]),
    ("v_mad_co_u64_u32", &["B64", "B32", "B32", "B64"]),
    ("v_mad_co_i64_i32", &["I64", "B32", "B32", "I64"]),
    ("v_cvt_f32_fp8", &["F32", "B32"]),
    ("v_cvt_f32_bf8", &["F32", "B32"]),
    ("v_cvt_pk_f32_fp8", &["B64", "B32"]),
    ("v_cvt_pk_f32_bf8", &["B64", "B32"]),
    ("v_cvt_pk_fp8_f32", &["B16", "F32", "F32"]),
    ("v_cvt_pk_bf8_f32", &["B16", "F32", "F32"]),
    ("v_cvt_sr_fp8_f32", &["B32", "F32", "B32"]),
    ("v_cvt_sr_bf8_f32", &["B32", "F32", "B32"]),
    ("v_dot4_f32_fp8_bf8", &["F32", "Pk16", "Pk16", "F32"]),
    ("v_dot4_f32_bf8_fp8", &["F32", "Pk16", "Pk16", "F32"]),
    ("v_dot4_f32_fp8_fp8", &["F32", "Pk16", "Pk16", "F32"]),
    ("v_dot4_f32_bf8_bf8", &["F32", "Pk16", "Pk16", "F32"]),
    ("v_lshlrev_b64", &["B64", "B32", "B64"]),
    ("v_lshrrev_b64", &["B64", "B32", "B64"]),
    ("v_ashrrev_i64", &["I64", "B32", "I64"]),
    ("v_trig_preop_f64", &["F64", "F64", "B32"]),
    ("v_qsad_pk_u16_u8", &["B64", "B64", "B32", "B64"]),
    ("v_mqsad_pk_u16_u8", &["B64", "B64", "B32", "B64"]),
    ("v_mqsad_u32_u8", &["B128", "B64", "B32", "B128"]),
    ("v_cmp_class_f16", &["Mask", "F16", "B16"]),
    ("v_cmpx_class_f16", &["Mask", "F16", "B16"]),
    ("v_cmp_class_f32", &["Mask", "F32", "B32"]),
    ("v_cmpx_class_f32", &["Mask", "F32", "B32"]),
    ("v_cmp_class_f64", &["Mask", "F64", "B32"]),
    ("v_cmpx_class_f64", &["Mask", "F64", "B32"]),
    ("v_cndmask_b32", &["B32", "B32", "B32", "Mask"]),
    ("v_cndmask_b16", &["B16", "B16", "B16", "Mask"]),
    ("v_add_co_ci_u32", &["B32", "B32", "B32", "Mask"]),
    ("v_sub_co_ci_u32", &["B32", "B32", "B32", "Mask"]),
    ("v_subrev_co_ci_u32", &["B32", "B32", "B32", "Mask"]),
];

/// Operations with a scalar mask as second destination.
const CARRY_OUT: &[&str] = &[
    "v_add_co_ci_u32",
    "v_sub_co_ci_u32",
    "v_subrev_co_ci_u32",
    "v_add_co_u32",
    "v_sub_co_u32",
    "v_subrev_co_u32",
    "v_div_scale_f32",
    "v_div_scale_f64",
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_mad_co_u64_u32",
    "v_mad_co_i64_i32",
];

/// Kinds of the operands of an instruction whose text is `text`.
pub(crate) fn of(
    class: &Class,
    mnemonic: &str,
    text: &str,
    fields: &Fields,
    literal: Option<usize>,
) -> Result<Types, String> {
    let shown = registers(text);
    let width = |number: u32| {
        let register = shown.iter().find(|&&(_, first, _)| first == number);
        register.map_or(0, |&(_, _, count)| count)
    };
    let widths = [DST, SRC[0], SRC[1], SRC[2]].map(width);
    if matches!(class.name, "IMAGE" | "SAMPLE") {
        // How many registers data and address take depends on fields of the instruction: see the decoder.
        let store = mnemonic.starts_with("image_store");
        let (dst, data) = if store { ("None", "B32") } else { ("B32", "None") };
        return Ok(Types {
            dst,
            sdst: "None",
            src: ["None", data, "B256"],
        });
    }
    if matches!(
        class.name,
        "SOP1"
            | "SOP2"
            | "SOPC"
            | "SOPK"
            | "SOPP"
            | "SMEM"
            | "DS"
            | "GWS"
            | "FLAT"
            | "GLOBAL"
            | "SCRATCH"
            | "MUBUF"
            | "BUFFER"
    ) {
        let signed = class.name.starts_with("SOP") && mnemonic.ends_with("_i64");
        let mut kinds = [""; 4];
        for (kind, width) in kinds.iter_mut().zip(widths) {
            *kind = plain(width)?;
            if signed && *kind == "B64" {
                *kind = "I64";
            }
        }
        if mnemonic.ends_with("_f16") {
            // SOPC writes its constants as numbers.
            let half = if class.name == "SOPC" { "B16" } else { "F16" };
            for kind in kinds
                .iter_mut()
                .filter(|kind| class.name.starts_with("SOP") && **kind == "B32")
            {
                *kind = half;
            }
        }
        if class.name == "SOPK" && !fields.extra.is_empty() {
            kinds[1] = "B32";
        }
        if class.name == "BUFFER" && mnemonic.starts_with("buffer_load_") {
            // One field has the data of loads and of stores.
            kinds.swap(0, 2);
        }
        return Ok(Types {
            dst: kinds[0],
            sdst: "None",
            src: [kinds[1], kinds[2], kinds[3]],
        });
    }
    let named = if widths == [0; 4] {
        vec!["None"]
    } else {
        by_name(mnemonic)?
    };
    let mut kinds = ["None"; 4];
    for (position, width) in widths.into_iter().enumerate() {
        let name = named[position.min(named.len() - 1)];
        kinds[position] = match width {
            0 => "None",
            _ if regs(name) == width => name,
            _ if mnemonic.starts_with("v_wmma") || mnemonic.starts_with("v_swmmac") => plain(width)?,
            _ => {
                return Err(format!(
                    "operand {position} takes {width} registers, which {name} does not"
                ));
            }
        };
    }
    let mut types = Types {
        dst: kinds[0],
        sdst: "None",
        src: [kinds[1], kinds[2], kinds[3]],
    };
    let mk = mnemonic;
    if mk.starts_with("v_cmp") {
        (types.dst, types.sdst) = ("None", "Mask");
    }
    if CARRY_OUT.contains(&mk) {
        types.sdst = "Mask";
    }
    if class.name == "VOP2" || class.name.starts_with("VOPD") {
        if mk.contains("_co_ci_") || mk.starts_with("v_cndmask") {
            types.src[2] = "Mask";
        }
        // The probe finds the registers of an operation with a literal in its first two source fields.
        match literal {
            Some(2) => types.src[2] = types.src[0],
            Some(1) => types.src[2] = types.src[1],
            _ => {}
        }
    }
    Ok(types)
}

fn plain(width: u32) -> Result<&'static str, String> {
    Ok(match width {
        0 => "None",
        1 => "B32",
        2 => "B64",
        3 => "B96",
        4 => "B128",
        8 => "B256",
        16 => "B512",
        32 => "B1024",
        other => return Err(format!("no kind takes {other} registers")),
    })
}

fn regs(kind: &str) -> u32 {
    match kind {
        "B64" | "I64" | "F64" => 2,
        "B96" => 3,
        "B128" => 4,
        "B256" => 8,
        "B512" => 16,
        _ => 1,
    }
}

/// Kinds by the mnemonic: destination, then sources; the last one repeats.
fn by_name(mnemonic: &str) -> Result<Vec<&'static str>, String> {
    if let Some((_, kinds)) = SPECIAL.iter().find(|(name, _)| *name == mnemonic) {
        return Ok(kinds.to_vec());
    }
    if mnemonic.starts_with("v_swmmac") {
        return Ok(vec!["B32"]);
    }
    let tokens: Vec<&'static str> = mnemonic.split('_').filter_map(token).collect();
    let (Some(&first), Some(&last)) = (tokens.first(), tokens.last()) else {
        return Err("no word of its mnemonic is a kind, so it needs a row in `SPECIAL`".to_owned());
    };
    if mnemonic.starts_with("v_pk_") {
        return Ok(vec![if last == "F16" { "PkF16" } else { "Pk16" }]);
    }
    if mnemonic.starts_with("v_dot") {
        return Ok(vec!["B32", "Pk16", "Pk16", "B32"]);
    }
    if mnemonic.starts_with("v_cvt_pk_") {
        return Ok(vec![if first == "F16" { "PkF16" } else { "Pk16" }, last]);
    }
    if mnemonic.starts_with("v_cmp") {
        return Ok(vec!["Mask", last]);
    }
    // Byte and nibble sums read whole registers.
    if mnemonic.starts_with("v_sad") || mnemonic.starts_with("v_msad") {
        return Ok(vec!["B32"]);
    }
    Ok(vec![first, last])
}

fn token(word: &str) -> Option<&'static str> {
    Some(match word {
        "f16" => "F16",
        "bf16" => "Bf16",
        "b16" | "i16" | "u16" => "B16",
        "f32" => "F32",
        "b32" | "i32" | "u32" | "i24" | "u24" | "u8" | "i4" | "ubyte0" | "ubyte1" | "ubyte2" | "ubyte3" => "B32",
        "f64" => "F64",
        "b64" | "u64" => "B64",
        "i64" => "I64",
        _ => return None,
    })
}
