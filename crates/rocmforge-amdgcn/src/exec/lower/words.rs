//! Words of the instructions that tests of lowering are made of, from `llvm-mc-19`.

use crate::exec::lower::decoded::Decoded;
use rocmforge_isa::{Arch, Op, decode_for};
use std::collections::HashMap;

/// Text of an instruction as gfx1100 has it, its words there, and those of gfx1201 where they are others. A branch has no target yet.
const WORDS: &[(&str, &str, &str)] = &[
    ("ds_bpermute_b32 v6, v1, v5", "dacc0000 06000501", ""),
    ("ds_cmpstore_rtn_b32 v9, v21, v6, v7", "d8c00000 09070615", ""),
    (
        "ds_load_2addr_b32 v[7:8], v20 offset0:1 offset1:2",
        "d8dc0201 07000014",
        "",
    ),
    (
        "ds_load_2addr_b32 v[8:9], v20 offset0:1 offset1:2",
        "d8dc0201 08000014",
        "",
    ),
    ("ds_load_b32 v1, v20", "d8d80000 01000014", ""),
    ("ds_load_b32 v1, v20 offset:4", "d8d80004 01000014", ""),
    ("ds_load_b32 v1, v21", "d8d80000 01000015", ""),
    ("ds_load_b32 v5, v20", "d8d80000 05000014", ""),
    ("ds_load_b32 v5, v20 offset:4", "d8d80004 05000014", ""),
    ("ds_load_b32 v7, v20", "d8d80000 07000014", ""),
    ("ds_load_b32 v7, v20 offset:4", "d8d80004 07000014", ""),
    ("ds_load_b32 v7, v20 offset:12", "d8d8000c 07000014", ""),
    ("ds_load_b32 v7, v20 offset:256", "d8d80100 07000014", ""),
    ("ds_load_b32 v7, v20 offset:516", "d8d80204 07000014", ""),
    ("ds_store_2addr_b32 v20, v5, v8 offset1:1", "d8380100 00080514", ""),
    ("ds_store_2addr_b32 v20, v8, v5 offset1:1", "d8380100 00050814", ""),
    (
        "ds_store_2addr_b64 v20, v[8:9], v[4:5] offset1:1",
        "d9380100 00040814",
        "",
    ),
    (
        "ds_store_2addr_stride64_b32 v20, v8, v5 offset1:1",
        "d83c0100 00050814",
        "",
    ),
    (
        "ds_store_2addr_stride64_b64 v20, v[8:9], v[4:5] offset1:1",
        "d93c0100 00040814",
        "",
    ),
    ("ds_store_b32 v20, v1", "d8340000 00000114", ""),
    ("ds_store_b32 v20, v5", "d8340000 00000514", ""),
    ("ds_store_b64 v1, v[12:13]", "d9340000 00000c01", ""),
    (
        "ds_storexchg_2addr_rtn_b32 v[8:9], v20, v8, v8 offset1:1",
        "d8b80100 08080814",
        "",
    ),
    ("ds_store_b8 v20, v8 offset:3", "d8780003 00000814", ""),
    ("ds_store_b8 v20, v8 offset:4", "d8780004 00000814", ""),
    ("ds_store_b16 v20, v8 offset:2", "d87c0002 00000814", ""),
    ("ds_store_b32 v20, v8 offset:2", "d8340002 00000814", ""),
    ("ds_store_b128 v20, v[8:11] offset:4", "db7c0004 00000814", ""),
    ("ds_store_b32 v20, v5 offset:4", "d8340004 00000514", ""),
    ("ds_store_b64 v20, v[8:9] offset:1", "d9340001 00000814", ""),
    (
        "flat_atomic_add_u32 v5, v[1:2], v7 glc",
        "dcd44000 057c0701",
        "ec0d407c 03900005 00000001",
    ),
    (
        "flat_atomic_add_u32 v9, v[12:13], v7 glc",
        "dcd44000 097c070c",
        "ec0d407c 03900009 0000000c",
    ),
    (
        "flat_atomic_cmpswap_b32 v9, v[1:2], v[6:7] glc",
        "dcd04000 097c0601",
        "ec0d007c 03100009 00000001",
    ),
    (
        "flat_load_b32 v12, v[1:2]",
        "dc500000 0c7c0001",
        "ec05007c 0000000c 00000001",
    ),
    (
        "flat_load_b32 v5, v[1:2]",
        "dc500000 057c0001",
        "ec05007c 00000005 00000001",
    ),
    (
        "flat_load_b32 v5, v[4:5]",
        "dc500000 057c0004",
        "ec05007c 00000005 00000004",
    ),
    (
        "flat_load_b32 v6, v[12:13]",
        "dc500000 067c000c",
        "ec05007c 00000006 0000000c",
    ),
    (
        "flat_load_b32 v8, v[14:15]",
        "dc500000 087c000e",
        "ec05007c 00000008 0000000e",
    ),
    (
        "flat_load_b32 v8, v[1:2]",
        "dc500000 087c0001",
        "ec05007c 00000008 00000001",
    ),
    (
        "flat_load_b32 v8, v[3:4]",
        "dc500000 087c0003",
        "ec05007c 00000008 00000003",
    ),
    (
        "flat_load_d16_b16 v5, v[1:2]",
        "dc800000 057c0001",
        "ec08007c 00000005 00000001",
    ),
    (
        "flat_load_d16_b16 v5, v[3:4]",
        "dc800000 057c0003",
        "ec08007c 00000005 00000003",
    ),
    (
        "flat_store_b32 v[12:13], v5",
        "dc680000 007c050c",
        "ec06807c 02800000 0000000c",
    ),
    (
        "flat_store_b32 v[1:2], v13",
        "dc680000 007c0d01",
        "ec06807c 06800000 00000001",
    ),
    (
        "flat_store_b32 v[1:2], v22",
        "dc680000 007c1601",
        "ec06807c 0b000000 00000001",
    ),
    (
        "flat_store_b32 v[1:2], v5",
        "dc680000 007c0501",
        "ec06807c 02800000 00000001",
    ),
    (
        "flat_store_b32 v[1:2], v8",
        "dc680000 007c0801",
        "ec06807c 04000000 00000001",
    ),
    (
        "flat_store_b32 v[3:4], v5",
        "dc680000 007c0503",
        "ec06807c 02800000 00000003",
    ),
    (
        "flat_store_b32 v[5:6], v5",
        "dc680000 007c0505",
        "ec06807c 02800000 00000005",
    ),
    (
        "flat_store_b64 v[1:2], v[12:13]",
        "dc6c0000 007c0c01",
        "ec06c07c 06000000 00000001",
    ),
    (
        "global_atomic_cmpswap_b32 v9, v[1:2], v[6:7], off glc",
        "dcd24000 097c0601",
        "ee0d007c 03100009 00000001",
    ),
    (
        "global_atomic_cmpswap_b32 v9, v[1:2], v[6:7], off offset:8 glc",
        "dcd24008 097c0601",
        "ee0d007c 03100009 00000801",
    ),
    (
        "global_load_b32 v5, v20, s[0:1]",
        "dc520000 05000014",
        "ee050000 00000005 00000014",
    ),
    (
        "global_load_b32 v5, v20, s[0:1] offset:8",
        "dc520008 05000014",
        "ee050000 00000005 00000814",
    ),
    (
        "global_load_b32 v5, v3, s[2:3]",
        "dc520000 05020003",
        "ee050002 00000005 00000003",
    ),
    (
        "global_load_b32 v5, v3, s[34:35]",
        "dc520000 05220003",
        "ee050022 00000005 00000003",
    ),
    (
        "global_load_b32 v5, v[1:2], off",
        "dc520000 057c0001",
        "ee05007c 00000005 00000001",
    ),
    (
        "global_load_d16_b16 v3, v9, s[6:7]",
        "dc820000 03060009",
        "ee080006 00000003 00000009",
    ),
    (
        "global_load_u8 v5, v3, s[2:3]",
        "dc420000 05020003",
        "ee040002 00000005 00000003",
    ),
    (
        "global_store_b32 v[12:13], v5, off",
        "dc6a0000 007c050c",
        "ee06807c 02800000 0000000c",
    ),
    (
        "global_store_b64 v[1:2], v[12:13], off",
        "dc6e0000 007c0c01",
        "ee06c07c 06000000 00000001",
    ),
    ("s_add_i32 s32, s32, 64", "8120c020", ""),
    ("s_add_i32 s8, s33, 48", "8108b021", ""),
    ("s_add_u32 s2, s2, 0x100", "8002ff02 00000100", ""),
    ("s_add_u32 s2, s2, 0x200", "8002ff02 00000200", ""),
    ("s_add_u32 s34, s34, 0x100", "8022ff22 00000100", ""),
    ("s_addc_u32 s3, s3, 0", "82038003", ""),
    ("s_addc_u32 s35, s35, 0", "82238023", ""),
    ("s_and_saveexec_b32 s2, s0", "be822000", ""),
    ("s_cbranch_scc1", "bfa20000", ""),
    ("s_cmp_eq_u32 s2, 0", "bf068002", ""),
    ("s_endpgm", "bfb00000", ""),
    ("s_getpc_b64 s[0:1]", "be804700", ""),
    ("s_getpc_b64 s[2:3]", "be824700", ""),
    ("s_getpc_b64 s[34:35]", "bea24700", ""),
    ("s_getreg_b32 s9, hwreg(HW_REG_MODE)", "b889f801", ""),
    ("s_load_b32 s8, s[2:3], null", "f4000201 f8000000", ""),
    ("s_load_b32 s8, s[6:7], null", "f4000203 f8000000", ""),
    ("s_load_b32 s9, s[2:3], s8", "f4000241 10000000", ""),
    ("s_lshr_b64 s[10:11], s[4:5], s7", "858a0704", ""),
    ("s_mov_b32 exec_lo, -1", "befe00c1", ""),
    ("s_mov_b32 exec_lo, 0", "befe0080", ""),
    ("s_mov_b32 exec_lo, s0", "befe0000", ""),
    ("s_mov_b32 exec_lo, s1", "befe0001", ""),
    ("s_mov_b32 m0, s0", "befd0000", ""),
    ("s_mov_b32 s3, 0", "be830080", ""),
    ("s_mov_b32 s33, 0", "bea10080", ""),
    ("s_mov_b32 s33, s32", "bea10020", ""),
    ("s_mov_b32 s5, -1", "be8500c1", ""),
    ("s_mov_b32 s6, 0", "be860080", ""),
    ("s_mov_b32 s7, 32", "be8700a0", ""),
    ("s_mov_b32 s7, s10", "be87000a", ""),
    ("s_mov_b64 s[4:5], src_private_base", "be8401ed", ""),
    ("s_mov_b64 s[6:7], s[2:3]", "be860102", ""),
    ("s_or_b32 exec_lo, exec_lo, s1", "8c7e017e", ""),
    ("s_setpc_b64 s[0:1]", "be804800", ""),
    ("s_setpc_b64 s[2:3]", "be804802", ""),
    ("s_setpc_b64 s[30:31]", "be80481e", ""),
    ("s_sleep 1", "bf830001", ""),
    ("s_sub_u32 s8, s4, s2", "80880204", ""),
    ("s_swappc_b64 s[2:3], s[4:5]", "be824904", ""),
    ("s_swappc_b64 s[30:31], s[0:1]", "be9e4900", ""),
    ("s_swappc_b64 s[34:35], s[4:5]", "bea24904", ""),
    (
        "scratch_load_b32 v12, off, s33 offset:56",
        "dc510038 0c210000",
        "ed050021 0000000c 00003800",
    ),
    (
        "scratch_load_b32 v21, off, s33 offset:64",
        "dc510040 15210000",
        "ed050021 00000015 00004000",
    ),
    (
        "scratch_load_b32 v3, off, s32 offset:16",
        "dc510010 03200000",
        "ed050020 00000003 00001000",
    ),
    (
        "scratch_load_b32 v6, off, off offset:16",
        "dc510010 067c0000",
        "ed05007c 00000006 00001000",
    ),
    (
        "scratch_load_b32 v6, off, s32 offset:-44",
        "dc511fd4 06200000",
        "ed050020 00000006 ffffd400",
    ),
    (
        "scratch_load_b32 v6, off, s32 offset:-48",
        "dc511fd0 06200000",
        "ed050020 00000006 ffffd000",
    ),
    (
        "scratch_load_b32 v6, off, s33 offset:46",
        "dc51002e 06210000",
        "ed050021 00000006 00002e00",
    ),
    (
        "scratch_load_b32 v6, off, s33 offset:48",
        "dc510030 06210000",
        "ed050021 00000006 00003000",
    ),
    (
        "scratch_load_b32 v6, off, s33 offset:52",
        "dc510034 06210000",
        "ed050021 00000006 00003400",
    ),
    (
        "scratch_load_b32 v6, off, s33 offset:64",
        "dc510040 06210000",
        "ed050021 00000006 00004000",
    ),
    (
        "scratch_load_b32 v8, v1, off",
        "dc510000 08fc0001",
        "ed05007c 00020008 00000001",
    ),
    (
        "scratch_load_b64 v[3:4], off, s33 offset:56",
        "dc550038 03210000",
        "ed054021 00000003 00003800",
    ),
    (
        "scratch_load_b64 v[6:7], off, s33 offset:44",
        "dc55002c 06210000",
        "ed054021 00000006 00002c00",
    ),
    (
        "scratch_load_u8 v12, off, s33 offset:56",
        "dc410038 0c210000",
        "ed040021 0000000c 00003800",
    ),
    (
        "scratch_load_u8 v6, off, s33 offset:51",
        "dc410033 06210000",
        "ed040021 00000006 00003300",
    ),
    (
        "scratch_store_b32 off, v1, s33 offset:56",
        "dc690038 00210100",
        "ed068021 00800000 00003800",
    ),
    (
        "scratch_store_b32 off, v16, s33 offset:56",
        "dc690038 00211000",
        "ed068021 08000000 00003800",
    ),
    (
        "scratch_store_b32 off, v20, s33 offset:64",
        "dc690040 00211400",
        "ed068021 0a000000 00004000",
    ),
    (
        "scratch_store_b32 off, v3, s32 offset:16",
        "dc690010 00200300",
        "ed068020 01800000 00001000",
    ),
    (
        "scratch_store_b32 off, v5, s33 offset:16",
        "dc690010 00210500",
        "ed068021 02800000 00001000",
    ),
    (
        "scratch_store_b32 off, v5, s33 offset:48",
        "dc690030 00210500",
        "ed068021 02800000 00003000",
    ),
    (
        "scratch_store_b32 off, v6, s33 offset:64",
        "dc690040 00210600",
        "ed068021 03000000 00004000",
    ),
    (
        "scratch_store_b32 v1, v3, off",
        "dc690000 00fc0301",
        "ed06807c 01820000 00000001",
    ),
    (
        "scratch_store_b64 off, v[12:13], s33 offset:56",
        "dc6d0038 00210c00",
        "ed06c021 06000000 00003800",
    ),
    (
        "scratch_store_b8 off, v1, s33 offset:57",
        "dc610039 00210100",
        "ed060021 00800000 00003900",
    ),
    (
        "scratch_store_b8 off, v16, s33 offset:56",
        "dc610038 00211000",
        "ed060021 08000000 00003800",
    ),
    ("v_add_co_ci_u32_e64 v15, s8, v13, 0, s8", "d520080f 0021010d", ""),
    ("v_add_co_ci_u32_e64 v2, null, 0, s1, s2", "d5207c02 00080280", ""),
    ("v_add_co_ci_u32_e64 v2, null, s1, 0, s2", "d5207c02 00090001", ""),
    ("v_add_co_ci_u32_e64 v2, null, s1, 0, s3", "d5207c02 000d0001", ""),
    ("v_add_co_u32 v1, s2, s0, v20", "d7000201 00022800", ""),
    ("v_add_co_u32 v1, s2, v20, s0", "d7000201 00000114", ""),
    ("v_add_co_u32 v14, s8, v12, v1", "d700080e 0002030c", ""),
    ("v_add_nc_u32_e32 v21, 4, v20", "4a2a2884", ""),
    ("v_add_nc_u32_e32 v6, v5, v5", "4a0c0b05", ""),
    ("v_cmp_eq_u32_e32 vcc_lo, 0, v1", "7c940280", ""),
    ("v_cmp_ne_u32_e64 s8, v12, s5", "d44d0008 00000b0c", ""),
    ("v_cmpx_ne_u32_e32 v0, v1", "7d9a0300", ""),
    ("v_cndmask_b32_e64 v12, s6, v12, s8", "d501000c 00221806", ""),
    ("v_cndmask_b32_e64 v14, s6, v13, s8", "d501000e 00221a06", ""),
    ("v_cndmask_b32_e64 v22, v0, v1, s9", "d5010016 00260300", ""),
    ("v_lshl_add_u32 v21, v8, 2, 4", "d6460015 02110508", ""),
    ("v_lshlrev_b32_e32 v20, 2, v8", "30281082", ""),
    ("v_mad_u64_u32 v[1:2], null, s2, 4, v[12:13]", "d6fe7c01 04310802", ""),
    ("v_mad_u64_u32 v[1:2], null, s4, 4, v[12:13]", "d6fe7c01 04310804", ""),
    (
        "v_mov_b32_dpp v6, v5 row_shl:1 row_mask:0xf bank_mask:0xf",
        "7e0c02fa ff010105",
        "",
    ),
    ("v_mov_b32_e32 v1, s1", "7e020201", ""),
    ("v_mov_b32_e32 v1, s2", "7e020202", ""),
    ("v_mov_b32_e32 v1, v20", "7e020314", ""),
    ("v_mov_b32_e32 v1, v8", "7e020308", ""),
    ("v_mov_b32_e32 v12, 0", "7e180280", ""),
    ("v_mov_b32_e32 v12, s2", "7e180202", ""),
    ("v_mov_b32_e32 v12, s8", "7e180208", ""),
    ("v_mov_b32_e32 v12, v16", "7e180310", ""),
    ("v_mov_b32_e32 v13, 0", "7e1a0280", ""),
    ("v_mov_b32_e32 v13, s3", "7e1a0203", ""),
    ("v_mov_b32_e32 v13, s7", "7e1a0207", ""),
    ("v_mov_b32_e32 v13, v14", "7e1a030e", ""),
    ("v_mov_b32_e32 v16, 0x130", "7e2002ff 00000130", ""),
    ("v_mov_b32_e32 v16, v12", "7e20030c", ""),
    ("v_mov_b32_e32 v16, v17", "7e200311", ""),
    ("v_mov_b32_e32 v17, 0", "7e220280", ""),
    ("v_mov_b32_e32 v2, s3", "7e040203", ""),
    ("v_mov_b32_e32 v20, v21", "7e280315", ""),
    ("v_mov_b32_e32 v22, s9", "7e2c0209", ""),
    ("v_mov_b32_e32 v3, 0", "7e060280", ""),
    ("v_mov_b32_e32 v3, s8", "7e060208", ""),
    ("v_mov_b32_e32 v3, v5", "7e060305", ""),
    ("v_mov_b32_e32 v5, 0", "7e0a0280", ""),
    ("v_mov_b32_e32 v6, 0", "7e0c0280", ""),
    ("v_mov_b32_e32 v6, v5", "7e0c0305", ""),
    ("v_mov_b32_e32 v7, v5", "7e0e0305", ""),
    ("v_mov_b32_e32 v7, v6", "7e0e0306", ""),
    ("v_mov_b32_e32 v8, v6", "7e100306", ""),
    ("v_movreld_b32_e32 v12, v8", "7e188508", ""),
    ("v_movrels_b32_e32 v1, v12", "7e02870c", ""),
    ("v_movrels_b32_e32 v5, v12", "7e0a870c", ""),
    ("v_movrels_b32_e32 v8, v12", "7e10870c", ""),
    ("v_permlane16_b32 v1, v20, s2, s3", "d65b0001 000c0514", ""),
    ("v_permlane16_b32 v6, v5, s2, s3", "d65b0006 000c0505", ""),
    ("v_permlanex16_b32 v6, v5, s2, s3", "d65c0006 000c0505", ""),
    ("v_readfirstlane_b32 s1, v20", "7e020514", ""),
    ("v_readfirstlane_b32 s2, v1", "7e040501", ""),
    ("v_readlane_b32 s1, v5, 3", "d7600001 00010705", ""),
    ("v_readlane_b32 s8, v20, 0", "d7600008 00010114", ""),
    ("v_readlane_b32 s8, v3, 3", "d7600008 00010703", ""),
    ("v_readlane_b32 s9, v13, 3", "d7600009 0001070d", ""),
    ("v_readlane_b32 s9, v21, 0", "d7600009 00010115", ""),
    ("v_sub_nc_u32_e32 v3, s4, v1", "4c060204", ""),
    ("v_swap_b32 v13, v1", "7e1acb01", ""),
    ("v_swap_b32 v13, v4", "7e1acb04", ""),
    ("v_swap_b32 v3, v4", "7e06cb04", ""),
    ("v_swap_b32 v5, v8", "7e0acb08", ""),
    ("v_swap_b32 v7, v5", "7e0ecb05", ""),
    ("v_swap_b32 v8, v7", "7e10cb07", ""),
    ("v_writelane_b32 v20, s2, 0", "d7610014 00010002", ""),
    ("v_writelane_b32 v20, s4, 1", "d7610014 00010204", ""),
    ("v_writelane_b32 v20, s7, 0", "d7610014 00010007", ""),
    ("v_writelane_b32 v3, s4, 0", "d7610003 00010004", ""),
    ("v_writelane_b32 v5, s1, 3", "d7610005 00010601", ""),
];

/// Decodes lines of instructions and labels.
pub(super) fn assemble(arch: Arch, text: &str) -> Vec<Decoded> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut labels = HashMap::new();
    let mut pc = 0;
    for line in lines() {
        match line.strip_suffix(':') {
            Some(label) => drop(labels.insert(label, pc)),
            None => pc += 4 * of(arch, line).len() as u64,
        }
    }
    let mut pc = 0;
    let instructions = lines().filter(|line| !line.ends_with(':')).enumerate();
    let decode = |(index, line): (usize, &str)| {
        let mut words = of(arch, line);
        if let Some(to) = line.split(' ').nth(1).and_then(|label| labels.get(label)) {
            words[0] |= (to.wrapping_sub(pc + 4) as u32 / 4) & 0xffff;
        }
        let inst = decode_for(arch, &words, pc).unwrap_or_else(|error| panic!("{line}: {error}"));
        let at = pc;
        pc += 4 * words.len() as u64;
        Decoded { inst, pc: at, index }
    };
    instructions.map(decode).collect()
}

/// The words of an instruction.
fn of(arch: Arch, text: &str) -> Vec<u32> {
    let name = |name: &str| name == text || name == "s_cbranch_scc1" && text.starts_with(name);
    let row = WORDS.iter().find(|row| name(row.0));
    let (_, older, newer) = row.unwrap_or_else(|| panic!("{text}: no words"));
    let words = if arch == Arch::Gfx1100 || newer.is_empty() {
        older
    } else {
        newer
    };
    rocmforge_test_support::llvm::hex(words)
}

#[test]
fn words_are_those_of_the_text() {
    for (text, ..) in WORDS {
        for arch in [Arch::Gfx1100, Arch::Gfx1201] {
            let words = of(arch, text);
            let inst = decode_for(arch, &words, 0).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(usize::from(inst.size), 4 * words.len(), "{text}");
            let found = inst.to_string();
            let found = match inst.op {
                Op::SCbranchScc1 => found.replace(" 0", ""),
                // gfx1201 has other words for these.
                Op::SAddCoI32 | Op::SAddCoU32 | Op::SSubCoU32 | Op::VMadCoU64U32 => found.replace("_co_", "_"),
                Op::SAddCoCiU32 => found.replace("s_add_co_ci_u32", "s_addc_u32"),
                Op::SLoadB32 => found.replace(", 0x0", ", null").replace(" offset:0x0", ""),
                _ => found.replace("th:TH_ATOMIC_RETURN", "glc"),
            };
            assert_eq!(found, *text, "{arch}");
        }
    }
}
