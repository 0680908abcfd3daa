//! Operands land where the documentation of `inst` says.

use rocmforge_isa::{Arch, DecodeError, Format, Inst, Op, Operand, Ty, decode, decode_for};
use rocmforge_isa::{Dpp, DppCtrl, InlineFloat};

fn one(words: &[u32]) -> Inst {
    let inst = decode(words, 0).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(usize::from(inst.size), 4 * words.len(), "{inst}");
    inst
}

#[test]
fn global_load_with_scalar_base() {
    let inst = one(&[0xdc52_1fff, 0x0204_0006]);
    assert_eq!(inst.to_string(), "global_load_b32 v2, v6, s[4:5] offset:-1");
    assert_eq!(
        (inst.op, inst.format, inst.imm),
        (Op::GlobalLoadB32, Format::Global, -1)
    );
    assert_eq!(
        (inst.dst, inst.src),
        (Operand::Vgpr(2), [Operand::Vgpr(6), Operand::None, Operand::Sgpr(4)])
    );
    assert_eq!(inst.ty.src, [Ty::B32, Ty::None, Ty::B64]);
}

#[test]
fn conditional_move_reads_vcc() {
    let inst = one(&[0x0200_0006]);
    assert_eq!(inst.to_string(), "v_cndmask_b32_e32 v0, s6, v0, vcc_lo");
    assert_eq!(inst.src, [Operand::Sgpr(6), Operand::Vgpr(0), Operand::VccLo]);
}

/// A third source that is a mask chooses between numbers in one operation, and is a carry of integers in the other.
#[test]
fn a_conditional_move_takes_modifiers_and_a_sum_with_carry_does_not() {
    let inst = one(&[0xd501_0205, 0x200e_0501]);
    assert_eq!(inst.to_string(), "v_cndmask_b32_e64 v5, -v1, |v2|, s3");
    assert_eq!((inst.mods.neg, inst.mods.abs), (1, 2));
    let sum = one(&[0xd520_0605, 0x000e_0501]);
    assert_eq!(sum.to_string(), "v_add_co_ci_u32_e64 v5, s6, v1, v2, s3");
    assert_eq!(sum.ty.src, inst.ty.src);
    assert!(decode(&[0xd520_0605, 0x200e_0501], 0).is_err());
}

#[test]
fn both_halves_of_a_pair() {
    let inst = one(&[0xca20_0080, 0x0708_0c81]);
    assert_eq!(inst.to_string(), "v_dual_mov_b32 v7, 0 :: v_dual_add_nc_u32 v8, 1, v6");
    let y = inst.dual.as_deref().expect("a Y half");
    assert_eq!(
        (inst.op, inst.dst, inst.src[0]),
        (Op::VMovB32, Operand::Vgpr(7), Operand::Int(0))
    );
    assert_eq!(
        (y.op, y.dst, y.src),
        (
            Op::VAddNcU32,
            Operand::Vgpr(8),
            [Operand::Int(1), Operand::Vgpr(6), Operand::None]
        )
    );
    assert_eq!(y.size, 0);
}

#[test]
fn compare_writes_its_mask() {
    let inst = one(&[0xd411_006a, 0x0002_0d04]);
    assert_eq!((inst.dst, inst.sdst), (Operand::None, Operand::VccLo));
    let exec = one(&[0xd491_007e, 0x0002_0d04]);
    assert_eq!(exec.to_string(), "v_cmpx_lt_f32_e64 v4, v6");
    assert_eq!((exec.dst, exec.sdst), (Operand::None, Operand::ExecLo));
}

#[test]
fn high_halves_are_distinguished() {
    let inst = one(&[0x6504_0906]);
    assert_eq!(inst.to_string(), "v_add_f16_e32 v2.h, v6.l, v4.l");
    assert_eq!(inst.dst, Operand::VgprHalf { reg: 2, hi: true });
    assert_eq!(inst.mods.op_sel, 0b1000);
    let long = one(&[0xd532_0802, 0x0002_0d04]);
    assert_eq!(long.src[0], Operand::VgprHalf { reg: 4, hi: true });
    assert_eq!(long.src[1], Operand::VgprHalf { reg: 6, hi: false });
}

#[test]
fn lane_permutations() {
    let inst = one(&[0x0604_08fa, 0xff00_e405]);
    let Some(Dpp::Dpp16 {
        ctrl,
        row_mask,
        bank_mask,
        bound_ctrl,
        fetch_inactive,
    }) = inst.mods.dpp
    else {
        panic!("{inst} has a DPP control")
    };
    assert_eq!(ctrl, DppCtrl::QuadPerm([0, 1, 2, 3]));
    assert_eq!(
        (row_mask, bank_mask, bound_ctrl, fetch_inactive),
        (15, 15, false, false)
    );
    assert_eq!(inst.src[0], Operand::Vgpr(5));
}

#[test]
fn branches_know_their_target() {
    assert_eq!(one(&[0xbfa0_fff0]).branch_target(0x100), Some(0x104 - 64));
    assert_eq!(one(&[0xbfa5_0010]).branch_target(0x100), Some(0x104 + 64));
    assert_eq!(one(&[0xbf80_0000]).branch_target(0x100), None);
}

#[test]
fn constants_depend_on_the_operand() {
    let half = Operand::Float(InlineFloat::Half);
    assert_eq!(half.constant(Ty::F16), Some(0x3800));
    assert_eq!(half.constant(Ty::F32), Some(u64::from(0.5f32.to_bits())));
    assert_eq!(half.constant(Ty::F64), Some(0.5f64.to_bits()));
    assert_eq!(Operand::Int(-1).constant(Ty::B64), Some(u64::MAX));
    assert_eq!(Operand::Int(-1).constant(Ty::B32), Some(0xffff_ffff));
    assert_eq!(Operand::Literal(0x3ff0_0000).constant(Ty::F64), Some(1f64.to_bits()));
    assert_eq!(
        Operand::Literal(0x8000_0000).constant(Ty::I64),
        Some(0xffff_ffff_8000_0000)
    );
    assert_eq!(Operand::Vgpr(0).constant(Ty::B32), None);
}

/// Found by ten million random words.
#[test]
fn versions_without_a_name_are_decimal() {
    assert_eq!(one(&[0xb080_00da]).to_string(), "s_version 218");
    assert_eq!(one(&[0xb080_2021]).to_string(), "s_version 33|UC_VERSION_W64_BIT");
    assert_eq!(one(&[0xb080_0141]).to_string(), "s_version 0x141");
}

/// Found by ten million random words.
#[test]
fn masks_of_classes_have_32_bits() {
    let text = |words: &[u32]| one(words).to_string();
    assert_eq!(
        text(&[0xd47d_002f, 0x0001_fe63, 0xe7b2_cee7]),
        "v_cmp_class_f16_e64 s47, s99, 0xe7b2cee7"
    );
    assert_eq!(
        text(&[0xd47d_500a, 0x0001_feff, 0xf4ef_1866]),
        "v_cmp_class_f16_e64 s10, 0x1866, 0xf4ef1866"
    );
}

/// Words that LLVM refuses, each of which was once accepted.
#[test]
fn refused_as_by_llvm() {
    let v_pipeflush_with_destination = [0x7e06_3600];
    let scratch_load_with_exec_hi_as_base = [0xdc51_0000, 0x007f_0000];
    assert!(decode(&v_pipeflush_with_destination, 0).is_err());
    assert!(decode(&scratch_load_with_exec_hi_as_base, 0).is_err());
    assert!(decode(&[0x7e00_3600], 0).is_ok(), "v_pipeflush");
}

/// The words of LLVM 22's assembler.
#[test]
fn moves_of_halves_in_the_long_form() {
    for arch in Arch::ALL {
        let inst = decode_for(arch, &[0xd59c_0800, 0x0000_0101], 0).expect("an instruction");
        assert_eq!(inst.op, Op::VMovB16, "{arch}");
        assert_eq!(inst.to_string(), "v_mov_b16_e64 v0.l, v1.h", "{arch}");
    }
}

#[test]
fn a_source_that_is_not_there_may_be_the_constant_0() {
    const ZEROS: u32 = 0x80 << 9 | 0x80 << 18;
    for arch in Arch::ALL {
        // v_rcp_f32 with places for a second and a third source, v_add_f32 for a third.
        for (words, text) in [
            ([0xd5aa_0000, 0x0000_0101 | ZEROS], "v_rcp_f32_e64 v0, v1"),
            ([0xd5aa_0000, 0x0000_0101 | 0x80 << 18], "v_rcp_f32_e64 v0, v1"),
            ([0xd503_0000, 0x0002_0501 | 0x80 << 18], "v_add_f32_e64 v0, v1, v2"),
        ] {
            let inst = decode_for(arch, &words, 0).expect("an instruction");
            assert_eq!(inst.to_string(), text, "{arch}");
        }
        // A register there is a mistake of whoever wrote it.
        let register = decode_for(arch, &[0xd5aa_0000, 0x0000_0301], 0);
        assert!(
            matches!(register, Err(DecodeError::Invalid { .. })),
            "{arch}: {register:?}"
        );
    }
}
