//! Facts that LLVM's descriptions do not state: a table for each, by operation.
//!
//! A table has a row for every operation of the kind that it is about. What LLVM says tells which those are where it can. Elsewhere a word
//! in the mnemonic makes a row mandatory; the value always comes from the row. An operation without its row is an error, and so is a row
//! without an operation.

use super::Error;
use std::collections::{BTreeMap, BTreeSet};

/// Facts by operation.
pub(crate) type Table<T> = &'static [(&'static str, T)];

/// How loads and stores put values into registers, by operation without the address space. LLVM tells which keep a part of their
/// destination: see [`keeps_half`].
const ELEMENTS: Table<&str> = &[
    ("load_b32", "Words"),
    ("load_b64", "Words"),
    ("load_b96", "Words"),
    ("load_b128", "Words"),
    ("load_b256", "Words"),
    ("load_b512", "Words"),
    ("load_2addr_b32", "Words"),
    ("load_2addr_b64", "Words"),
    ("load_2addr_stride64_b32", "Words"),
    ("load_2addr_stride64_b64", "Words"),
    ("load_addtid_b32", "Words"),
    ("load_u8", "U8"),
    ("load_i8", "I8"),
    ("load_u16", "U16"),
    ("load_i16", "I16"),
    ("load_d16_u8", "LowU8"),
    ("load_d16_i8", "LowI8"),
    ("load_d16_b16", "LowU16"),
    ("load_d16_hi_u8", "HighU8"),
    ("load_d16_hi_i8", "HighI8"),
    ("load_d16_hi_b16", "HighU16"),
    ("load_u8_d16", "LowU8"),
    ("load_i8_d16", "LowI8"),
    ("load_u16_d16", "LowU16"),
    ("load_u8_d16_hi", "HighU8"),
    ("load_i8_d16_hi", "HighI8"),
    ("load_u16_d16_hi", "HighU16"),
    ("load", "Format"),
    ("load_mip", "Format"),
    ("store", "Format"),
    ("store_mip", "Format"),
    ("sample", "Format"),
    ("sample_l", "Format"),
    ("sample_lz", "Format"),
    ("sample_d", "Format"),
    ("sample_d_g16", "Format"),
    ("gather4_lz", "Format"),
    ("load_tr_b64", "Transposed"),
    ("load_tr_b128", "Transposed"),
    ("load_block", "Block"),
    ("load_format_x", "Format"),
    ("load_format_xy", "Format"),
    ("load_format_xyz", "Format"),
    ("load_format_xyzw", "Format"),
    ("load_d16_format_x", "Format"),
    ("load_d16_format_xy", "Format"),
    ("load_d16_format_xyz", "Format"),
    ("load_d16_format_xyzw", "Format"),
    ("load_d16_hi_format_x", "Format"),
    ("load_lds_b32", "Lds"),
    ("load_lds_u8", "Lds"),
    ("load_lds_i8", "Lds"),
    ("load_lds_u16", "Lds"),
    ("load_lds_i16", "Lds"),
    ("load_lds_format_x", "Lds"),
    ("store_b32", "Words"),
    ("store_b64", "Words"),
    ("store_b96", "Words"),
    ("store_b128", "Words"),
    ("store_2addr_b32", "Words"),
    ("store_2addr_b64", "Words"),
    ("store_2addr_stride64_b32", "Words"),
    ("store_2addr_stride64_b64", "Words"),
    ("store_addtid_b32", "Words"),
    ("store_b8", "U8"),
    ("store_b16", "U16"),
    ("store_d16_hi_b8", "HighU8"),
    ("store_d16_hi_b16", "HighU16"),
    ("store_b8_d16_hi", "HighU8"),
    ("store_b16_d16_hi", "HighU16"),
    ("store_block", "Block"),
    ("store_format_x", "Format"),
    ("store_format_xy", "Format"),
    ("store_format_xyz", "Format"),
    ("store_format_xyzw", "Format"),
    ("store_d16_format_x", "Format"),
    ("store_d16_format_xy", "Format"),
    ("store_d16_format_xyz", "Format"),
    ("store_d16_format_xyzw", "Format"),
    ("store_d16_hi_format_x", "Format"),
];

/// Address spaces of [`ELEMENTS`].
const SPACES: [&str; 8] = [
    "image_",
    "buffer_",
    "flat_",
    "global_",
    "scratch_",
    "ds_",
    "s_buffer_",
    "s_",
];

/// Bytes that the offsets of operations with two of them count.
pub(crate) const OFFSET_UNITS: Table<u32> = &[
    ("ds_load_2addr_b32", 4),
    ("ds_load_2addr_b64", 8),
    ("ds_load_2addr_stride64_b32", 4 * 64),
    ("ds_load_2addr_stride64_b64", 8 * 64),
    ("ds_store_2addr_b32", 4),
    ("ds_store_2addr_b64", 8),
    ("ds_store_2addr_stride64_b32", 4 * 64),
    ("ds_store_2addr_stride64_b64", 8 * 64),
    ("ds_storexchg_2addr_rtn_b32", 4),
    ("ds_storexchg_2addr_rtn_b64", 8),
    ("ds_storexchg_2addr_stride64_rtn_b32", 4 * 64),
    ("ds_storexchg_2addr_stride64_rtn_b64", 8 * 64),
];

/// Lanes that an operation uses; those of matrices use all. [`LANE_WORDS`] ask for a row.
pub(crate) const LANES: Table<&str> = &[
    ("ds_bpermute_b32", "Others"),
    ("ds_permute_b32", "Others"),
    ("ds_swizzle_b32", "Others"),
    // These three use the data of the first lane that is on.
    ("ds_gws_barrier", "Others"),
    ("ds_gws_init", "Others"),
    ("ds_gws_sema_br", "Others"),
    // These have no data.
    ("ds_gws_sema_p", "Own"),
    ("ds_gws_sema_release_all", "Own"),
    ("ds_gws_sema_v", "Own"),
    ("global_load_tr_b128", "Others"),
    ("global_load_tr_b64", "Others"),
    ("v_permlane16_b32", "Others"),
    ("v_permlane16_var_b32", "Others"),
    ("v_permlane64_b32", "Others"),
    ("v_permlanex16_b32", "Others"),
    ("v_permlanex16_var_b32", "Others"),
    ("v_readfirstlane_b32", "Others"),
    ("v_readlane_b32", "Others"),
    ("v_writelane_b32", "Named"),
];

pub(crate) const LANE_WORDS: &[&str] = &[
    "bpermute",
    "gws",
    "permlane16",
    "permlane64",
    "permlanex16",
    "permute",
    "readfirstlane",
    "readlane",
    "swizzle",
    "tr",
    "writelane",
];

/// Registers relative to `m0`, of scalar and vector operations that read it.
pub(crate) const RELATIVE: Table<&str> = &[
    ("s_barrier_init", "None"),
    ("s_movreld_b32", "Destination"),
    ("s_movreld_b64", "Destination"),
    ("s_movrels_b32", "Source"),
    ("s_movrels_b64", "Source"),
    ("s_movrelsd_2_b32", "Apart"),
    ("s_sendmsg", "None"),
    ("s_sendmsghalt", "None"),
    ("s_ttracedata", "None"),
    ("v_movreld_b32", "Destination"),
    ("v_movrels_b32", "Source"),
    ("v_movrelsd_2_b32", "Apart"),
    ("v_movrelsd_b32", "Both"),
    ("v_swaprel_b32", "Apart"),
];

/// What `op_sel` chooses; [`OP_SEL_WORDS`] ask for a row, and LLVM tells the mixed ones.
pub(crate) const OP_SEL: Table<&str> = &[
    ("v_alignbit_b32", "ThirdHalf"),
    ("v_alignbyte_b32", "ThirdHalf"),
    ("v_cvt_f32_bf8", "SourceByte"),
    ("v_cvt_f32_fp8", "SourceByte"),
    ("v_cvt_pk_bf8_f32", "Halves"),
    ("v_cvt_pk_f32_bf8", "SourcePair"),
    ("v_cvt_pk_f32_fp8", "SourcePair"),
    ("v_cvt_pk_fp8_f32", "Halves"),
    ("v_cvt_sr_bf8_f32", "DestinationByte"),
    ("v_cvt_sr_fp8_f32", "DestinationByte"),
    ("v_permlane16_b32", "Options"),
    ("v_permlane16_var_b32", "Options"),
    ("v_permlane64_b32", "Halves"),
    ("v_permlanex16_b32", "Options"),
    ("v_permlanex16_var_b32", "Options"),
];

pub(crate) const OP_SEL_WORDS: &[&str] = &[
    "alignbit",
    "alignbyte",
    "bf8",
    "fp8",
    "permlane16",
    "permlane64",
    "permlanex16",
];

/// Whether the destination of a scalar operation that writes `exec` gets what that was before.
pub(crate) const SAVES_EXEC: Table<bool> = &[
    ("s_and_not0_saveexec_b32", true),
    ("s_and_not0_saveexec_b64", true),
    ("s_and_not0_wrexec_b32", false),
    ("s_and_not0_wrexec_b64", false),
    ("s_and_not1_saveexec_b32", true),
    ("s_and_not1_saveexec_b64", true),
    ("s_and_not1_wrexec_b32", false),
    ("s_and_not1_wrexec_b64", false),
    ("s_and_saveexec_b32", true),
    ("s_and_saveexec_b64", true),
    ("s_nand_saveexec_b32", true),
    ("s_nand_saveexec_b64", true),
    ("s_nor_saveexec_b32", true),
    ("s_nor_saveexec_b64", true),
    ("s_or_not0_saveexec_b32", true),
    ("s_or_not0_saveexec_b64", true),
    ("s_or_not1_saveexec_b32", true),
    ("s_or_not1_saveexec_b64", true),
    ("s_or_saveexec_b32", true),
    ("s_or_saveexec_b64", true),
    // The destination keeps the word of `exec` that is not executed.
    ("s_subvector_loop_begin", true),
    ("s_subvector_loop_end", true),
    ("s_xnor_saveexec_b32", true),
    ("s_xnor_saveexec_b64", true),
    ("s_xor_saveexec_b32", true),
    ("s_xor_saveexec_b64", true),
];

/// Whether a wave waits for others; [`WAIT_WORDS`] ask for a row.
pub(crate) const WAITS: Table<bool> = &[
    ("ds_gws_barrier", true),
    ("ds_gws_init", false),
    ("ds_gws_sema_br", false),
    ("ds_gws_sema_p", true),
    ("ds_gws_sema_release_all", false),
    ("ds_gws_sema_v", false),
    ("s_barrier", true),
    ("s_barrier_init", false),
    ("s_barrier_join", false),
    ("s_barrier_leave", false),
    ("s_barrier_signal", false),
    ("s_barrier_signal_isfirst", false),
    ("s_barrier_wait", true),
    ("s_get_barrier_state", false),
    ("s_wakeup_barrier", false),
];

pub(crate) const WAIT_WORDS: &[&str] = &["barrier", "gws"];

/// Loads and stores at addresses that grow with the number of the lane; [`BY_LANE_WORDS`] ask for a row.
pub(crate) const BY_LANE: Table<bool> = &[
    ("ds_load_addtid_b32", true),
    ("ds_store_addtid_b32", true),
    ("global_load_addtid_b32", true),
    ("global_store_addtid_b32", true),
];

pub(crate) const BY_LANE_WORDS: &[&str] = &["addtid"];

/// Bits of the sources that a result depends on; [`DEPENDENCE_WORDS`] ask for a row.
pub(crate) const DEPENDENCE: Table<&str> = &[
    ("s_and_b32", "And"),
    ("s_and_b64", "And"),
    ("s_and_not0_saveexec_b32", "All"),
    ("s_and_not0_saveexec_b64", "All"),
    ("s_and_not0_wrexec_b32", "All"),
    ("s_and_not0_wrexec_b64", "All"),
    ("s_and_not1_b32", "All"),
    ("s_and_not1_b64", "All"),
    ("s_and_not1_saveexec_b32", "All"),
    ("s_and_not1_saveexec_b64", "All"),
    ("s_and_not1_wrexec_b32", "All"),
    ("s_and_not1_wrexec_b64", "All"),
    ("s_and_saveexec_b32", "And"),
    ("s_and_saveexec_b64", "And"),
    ("s_cbranch_cdbgsys_and_user", "All"),
    ("s_cbranch_cdbgsys_or_user", "All"),
    ("s_cselect_b32", "Select"),
    ("s_cselect_b64", "Select"),
    ("s_getpc_b64", "None"),
    ("s_getreg_b32", "None"),
    ("s_or_b32", "Or"),
    ("s_or_b64", "Or"),
    ("s_or_not0_saveexec_b32", "All"),
    ("s_or_not0_saveexec_b64", "All"),
    ("s_or_not1_b32", "All"),
    ("s_or_not1_b64", "All"),
    ("s_or_not1_saveexec_b32", "All"),
    ("s_or_not1_saveexec_b64", "All"),
    ("s_or_saveexec_b32", "Or"),
    ("s_or_saveexec_b64", "Or"),
    ("s_sub_co_ci_u32", "All"),
    ("s_sub_co_i32", "Cancels"),
    ("s_sub_co_u32", "Cancels"),
    ("s_sub_f16", "Cancels"),
    ("s_sub_f32", "Cancels"),
    ("s_sub_i32", "Cancels"),
    ("s_sub_nc_u64", "Cancels"),
    ("s_sub_u32", "Cancels"),
    ("s_xor_b32", "Cancels"),
    ("s_xor_b64", "Cancels"),
    // With `exec`.
    ("s_xor_saveexec_b32", "All"),
    ("s_xor_saveexec_b64", "All"),
    ("v_and_b16", "And"),
    ("v_and_b32", "And"),
    ("v_and_or_b32", "All"),
    ("v_cndmask_b16", "Select"),
    ("v_cndmask_b32", "Select"),
    ("v_lshl_or_b32", "All"),
    ("v_mad_co_i64_i32", "LowWord"),
    ("v_mad_co_u64_u32", "LowWord"),
    ("v_mad_i16", "All"),
    ("v_mad_i32_i16", "All"),
    ("v_mad_i32_i24", "All"),
    ("v_mad_i64_i32", "LowWord"),
    ("v_mad_u16", "All"),
    ("v_mad_u32_u16", "All"),
    ("v_mad_u32_u24", "All"),
    ("v_mad_u64_u32", "LowWord"),
    ("v_or_b16", "Or"),
    ("v_or_b32", "Or"),
    ("v_pk_mad_i16", "All"),
    ("v_pk_mad_u16", "All"),
    // Equal sources need not be equal halves.
    ("v_pk_sub_i16", "All"),
    ("v_pk_sub_u16", "All"),
    ("v_sub_co_ci_u32", "All"),
    ("v_sub_co_u32", "Cancels"),
    ("v_sub_f16", "Cancels"),
    ("v_sub_f32", "Cancels"),
    ("v_sub_nc_i16", "Cancels"),
    ("v_sub_nc_i32", "Cancels"),
    ("v_sub_nc_u16", "Cancels"),
    ("v_sub_nc_u32", "Cancels"),
    ("v_subrev_co_ci_u32", "All"),
    ("v_subrev_co_u32", "Cancels"),
    ("v_subrev_f16", "Cancels"),
    ("v_subrev_f32", "Cancels"),
    ("v_subrev_nc_u32", "Cancels"),
    ("v_xor_b16", "Cancels"),
    ("v_xor_b32", "Cancels"),
];

pub(crate) const DEPENDENCE_WORDS: &[&str] = &[
    "and", "cndmask", "cselect", "getpc", "getreg", "mad", "or", "sub", "subrev", "xor",
];

/// The row of an operation that must have one where `needed` says so, or where its mnemonic has one of the words.
pub(crate) fn find<T: Copy>(
    table: Table<T>,
    words: &[&str],
    needed: bool,
    mnemonic: &str,
    fact: &str,
) -> Result<Option<T>, Error> {
    let row = table.iter().find(|(known, _)| *known == mnemonic);
    let asked = needed || mnemonic.split('_').any(|word| words.contains(&word));
    match row {
        Some(&(_, value)) if asked => Ok(Some(value)),
        Some(_) => Err(Error::Shape(format!("{mnemonic} needs no row in the table of {fact}"))),
        None if asked => Err(Error::Shape(format!(
            "{mnemonic} has no row in the table of {fact} (xtask/src/opcodes/known.rs)"
        ))),
        None => Ok(None),
    }
}

/// How a load or store puts values into registers.
pub(crate) fn element(mnemonic: &str) -> Result<&'static str, Error> {
    let without_space = |space: &str| {
        let operation = mnemonic.strip_prefix(space)?;
        ELEMENTS.iter().find(|(known, _)| *known == operation)
    };
    let row = SPACES.into_iter().find_map(without_space);
    row.map(|&(_, element)| element).ok_or_else(|| {
        Error::Shape(format!(
            "{mnemonic} has no row in the table of elements (xtask/src/opcodes/known.rs)"
        ))
    })
}

/// Elements whose loads leave the other half of the register, which LLVM states too.
pub(crate) fn keeps_half(element: &str) -> bool {
    ["LowU8", "LowI8", "LowU16", "HighU8", "HighI8", "HighU16"].contains(&element)
}

/// An error where a table has a row of an operation that does not exist.
pub(crate) fn check<T>(operations: &BTreeMap<String, T>) -> Result<(), Error> {
    fn names<T>(table: Table<T>) -> impl Iterator<Item = &'static str> {
        table.iter().map(|&(name, _)| name)
    }
    let all = names(OFFSET_UNITS)
        .chain(names(LANES))
        .chain(names(RELATIVE))
        .chain(names(OP_SEL))
        .chain(names(SAVES_EXEC))
        .chain(names(WAITS))
        .chain(names(BY_LANE))
        .chain(names(DEPENDENCE));
    let without_space: BTreeSet<&str> = (operations.keys())
        .flat_map(|name| SPACES.into_iter().filter_map(|space| name.strip_prefix(space)))
        .collect();
    let mut unknown: Vec<&str> = all.filter(|&name| !operations.contains_key(name)).collect();
    unknown.extend(names(ELEMENTS).filter(|name| !without_space.contains(name)));
    match unknown[..] {
        [] => Ok(()),
        _ => Err(Error::Shape(format!(
            "tables have rows of operations that do not exist: {unknown:?}"
        ))),
    }
}
