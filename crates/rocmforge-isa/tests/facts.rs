//! Facts of operations against the instruction set's manual, for one operation or more of each kind.

use rocmforge_isa::{Atomic, Dependence, Element, Flow, Lanes, Memory, Op, OpSel, Registers, Relative, Ty, Unit};

/// Registers an operation uses without naming them: read, then written.
#[test]
fn hidden_registers_are_those_of_the_manual() {
    const R: [Registers; 7] = [
        Registers::SCC,
        Registers::VCC,
        Registers::EXEC,
        Registers::M0,
        Registers::MODE,
        Registers::DST,
        Registers::SRC,
    ];
    const NAMES: [&str; 7] = ["scc", "vcc", "exec", "m0", "mode", "dst", "src"];
    let text = |registers: Registers| {
        let named = NAMES.into_iter().zip(R).filter(|(_, one)| registers.has(*one));
        named.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    };
    for (op, reads, writes) in [
        (Op::SAddU32, "", "scc"),
        (Op::SAddcU32, "scc", "scc"),
        (Op::SAddCoCiU32, "scc", "scc"),
        (Op::SMulI32, "", ""),
        (Op::SMulkI32, "dst", ""),
        (Op::SAddkI32, "dst", "scc"),
        (Op::SCmovB64, "scc dst", ""),
        (Op::SBitset1B32, "dst", ""),
        (Op::SCselectB32, "scc", ""),
        (Op::SFmacF32, "mode dst", ""),
        (Op::SAndSaveexecB32, "exec", "scc exec"),
        (Op::SAndNot1WrexecB32, "exec", "scc exec"),
        (Op::SCmpkEqI32, "", "scc"),
        (Op::SCbranchScc1, "scc", ""),
        (Op::SCbranchVccz, "vcc", ""),
        (Op::SCbranchExecz, "exec", ""),
        (Op::SMovrelsB32, "m0", ""),
        (Op::VAddF32, "exec mode", ""),
        (Op::VAddNcU32, "exec", ""),
        (Op::VFmacF32, "exec mode dst", ""),
        (Op::VDot2accF32F16, "exec mode dst", ""),
        (Op::VSwapB32, "exec dst", "src"),
        // Beside a half that it writes it keeps the other, which is not an operand.
        (Op::VFmaMixloF16, "exec mode", ""),
        (Op::VDivFmasF32, "vcc exec mode", ""),
        // It has a field for its mask.
        (Op::VCndmaskB32, "exec", ""),
        (Op::VCmpLtF32, "exec mode", ""),
        (Op::VCmpxLtF32, "exec mode", "exec"),
        (Op::VReadlaneB32, "", ""),
        (Op::GlobalLoadB32, "exec", ""),
    ] {
        let facts = op.facts();
        assert_eq!(
            (text(facts.reads), text(facts.writes)),
            (reads.into(), writes.into()),
            "{}",
            facts.mnemonic
        );
    }
}

#[test]
fn memory_and_flow_are_those_of_the_manual() {
    for (op, memory, flow) in [
        (Op::GlobalLoadB32, Memory::Load, Flow::Next),
        (Op::ScratchStoreB8, Memory::Store, Flow::Next),
        (Op::GlobalAtomicAddU32, Memory::Atomic, Flow::Next),
        (Op::FlatAtomicCmpswapB64, Memory::Atomic, Flow::Next),
        (Op::DsAddRtnF32, Memory::Atomic, Flow::Next),
        (Op::DsAddU32, Memory::Atomic, Flow::Next),
        // LLVM calls stores to LDS atomics without a result.
        (Op::DsStoreB8, Memory::Store, Flow::Next),
        (Op::DsStoreB16D16Hi, Memory::Store, Flow::Next),
        (Op::DsStoreB32, Memory::Store, Flow::Next),
        (Op::DsStoreB64, Memory::Store, Flow::Next),
        (Op::DsStoreB128, Memory::Store, Flow::Next),
        (Op::DsStore2addrB32, Memory::Store, Flow::Next),
        (Op::DsCmpstoreRtnB32, Memory::Atomic, Flow::Next),
        (Op::DsLoad2addrB64, Memory::Load, Flow::Next),
        (Op::DsStorexchg2addrRtnB32, Memory::Exchange, Flow::Next),
        (Op::DsBpermuteB32, Memory::None, Flow::Next),
        (Op::DsSwizzleB32, Memory::None, Flow::Next),
        (Op::GlobalInv, Memory::None, Flow::Next),
        (Op::BufferGl0Inv, Memory::None, Flow::Next),
        (Op::SLoadB128, Memory::Load, Flow::Next),
        (Op::SPrefetchData, Memory::Prefetch, Flow::Next),
        // LLVM lets it load and store, so that nothing moves over it.
        (Op::SWaitcntVscnt, Memory::None, Flow::Next),
        (Op::SBranch, Memory::None, Flow::Branch),
        (Op::SCbranchExecnz, Memory::None, Flow::ConditionalBranch),
        (Op::SSetpcB64, Memory::None, Flow::Jump),
        (Op::SSwappcB64, Memory::None, Flow::Call),
        (Op::SCallB64, Memory::None, Flow::Call),
        (Op::SEndpgm, Memory::None, Flow::End),
    ] {
        let facts = op.facts();
        assert_eq!((facts.memory, facts.flow), (memory, flow), "{}", facts.mnemonic);
    }
}

#[test]
fn units_and_results_are_those_of_the_manual() {
    for (op, unit) in [
        (Op::SAddU32, Unit::Scalar),
        (Op::SWaitcnt, Unit::Scalar),
        (Op::SLoadB32, Unit::ScalarMemory),
        (Op::VAddF32, Unit::Vector),
        (Op::VReadlaneB32, Unit::Vector),
        (Op::VExpF32, Unit::Transcendental),
        (Op::VSRcpF32, Unit::Transcendental),
        (Op::VDot4I32Iu8, Unit::Dot),
        (Op::VWmmaF32_16x16x16F16, Unit::Matrix),
        (Op::VSwmmacF32_16x16x32F16, Unit::SparseMatrix),
        (Op::DsLoadB32, Unit::Lds),
        (Op::ScratchLoadB32, Unit::VectorMemory),
    ] {
        assert_eq!(op.facts().unit, unit, "{}", op.mnemonic());
    }
    let scalar: Vec<Op> = (Op::ALL.iter().copied())
        .filter(|op| op.facts().scalar_result)
        .collect();
    assert!(scalar.contains(&Op::VReadfirstlaneB32) && scalar.contains(&Op::VSSqrtF16));
    assert!(scalar.iter().all(|op| op.mnemonic().starts_with("v_")), "{scalar:?}");
    assert!(!scalar.contains(&Op::VCmpLtF32) && !scalar.contains(&Op::VAddF32));
    for (op, returned) in [
        (Op::GlobalAtomicAddU32, Ty::B32),
        (Op::GlobalAtomicAddU64, Ty::B64),
        // Two values go in, one comes back.
        (Op::GlobalAtomicCmpswapB32, Ty::B32),
        (Op::FlatAtomicCmpswapB64, Ty::B64),
        (Op::GlobalLoadB32, Ty::None),
    ] {
        assert_eq!(op.facts().returned, returned, "{}", op.mnemonic());
    }
    assert!(Op::DsStore2addrStride64B32.facts().two_offsets && !Op::DsStoreB64.facts().two_offsets);
}

/// How loads and stores of each kind use registers.
#[test]
fn elements_are_those_of_the_manual() {
    for (op, element, keeps_rest) in [
        (Op::GlobalLoadB96, Element::Words, false),
        (Op::SLoadB512, Element::Words, false),
        (Op::DsStore2addrB64, Element::Words, false),
        (Op::FlatLoadI8, Element::I8, false),
        (Op::SBufferLoadU16, Element::U16, false),
        (Op::ScratchLoadD16B16, Element::LowU16, true),
        (Op::DsLoadI8D16Hi, Element::HighI8, true),
        (Op::BufferStoreD16HiB8, Element::HighU8, false),
        (Op::BufferLoadD16FormatX, Element::Format, true),
        (Op::GlobalLoadTrB64, Element::Transposed, false),
        (Op::BufferLoadLdsB32, Element::Lds, false),
        (Op::ScratchLoadBlock, Element::Block, false),
        (Op::GlobalAtomicAddU32, Element::None, false),
        (Op::SPrefetchData, Element::None, false),
        (Op::VMovB32, Element::None, false),
    ] {
        let facts = op.facts();
        assert_eq!(
            (facts.element, facts.keeps_rest),
            (element, keeps_rest),
            "{}",
            facts.mnemonic
        );
    }
    for op in Op::ALL {
        let facts = op.facts();
        let moves = matches!(facts.memory, Memory::Load | Memory::Store);
        assert_eq!(moves, facts.element != Element::None, "{}", facts.mnemonic);
        assert_eq!(facts.two_offsets, facts.offset_unit != 1, "{}", facts.mnemonic);
    }
    let high = Element::HighI8.small().expect("of one byte");
    assert_eq!(
        (high.bytes, high.first, high.written, high.signed),
        (1, 2, 0b1100, true)
    );
    assert_eq!(Op::DsLoad2addrStride64B64.facts().offset_unit, 512);
}

/// Lanes, registers and bits that operations use beside the usual ones.
#[test]
fn uses_of_operands_are_those_of_the_manual() {
    for (op, lanes, keeps_rest) in [
        (Op::VAddF32, Lanes::Own, false),
        (Op::VDot4I32Iu8, Lanes::Own, false),
        (Op::VWmmaF32_16x16x16F16, Lanes::Others, false),
        (Op::VReadlaneB32, Lanes::Others, false),
        (Op::VWritelaneB32, Lanes::Named, true),
        // Lanes that read nothing keep what they have.
        (Op::VPermlane16B32, Lanes::Others, true),
        (Op::DsBpermuteB32, Lanes::Others, false),
        (Op::VFmaMixhiF16, Lanes::Own, true),
        (Op::VCvtSrFp8F32, Lanes::Own, true),
        (Op::VCvtF32Fp8, Lanes::Own, false),
        // It decides about the new value.
        (Op::VFmacF32, Lanes::Own, false),
    ] {
        let facts = op.facts();
        assert_eq!(
            (facts.lanes, facts.keeps_rest),
            (lanes, keeps_rest),
            "{}",
            facts.mnemonic
        );
    }
    let m0 = 3 << 16 | 5;
    for (op, distances) in [
        (Op::VMovrelsB32, Some((m0, 0))),
        (Op::SMovreldB64, Some((0, m0))),
        (Op::VMovrelsdB32, Some((m0, m0))),
        (Op::SMovrelsd2B32, Some((5, 3))),
        (Op::VSwaprelB32, Some((5, 3))),
        (Op::SSendmsg, None),
    ] {
        assert_eq!(op.facts().relative.distances(m0), distances, "{}", op.mnemonic());
    }
    assert_eq!(Op::VMovB32.facts().relative, Relative::None);
    for (op, op_sel) in [
        (Op::VAddF16, OpSel::Halves),
        (Op::VFmaMixF32, OpSel::Mixed),
        (Op::VAlignbitB32, OpSel::ThirdHalf),
        (Op::VCvtF32Bf8, OpSel::SourceByte),
        (Op::VCvtPkF32Fp8, OpSel::SourcePair),
        (Op::VCvtSrBf8F32, OpSel::DestinationByte),
        (Op::VPermlanex16VarB32, OpSel::Options),
    ] {
        assert_eq!(op.facts().op_sel, op_sel, "{}", op.mnemonic());
    }
    for (op, dependence) in [
        (Op::SAndSaveexecB64, Dependence::And),
        (Op::SAndNot1B32, Dependence::All),
        (Op::VOrB32, Dependence::Or),
        (Op::VXorB32, Dependence::Cancels),
        (Op::SCselectB64, Dependence::Select),
        (Op::VMadU64U32, Dependence::LowWord),
        (Op::SGetpcB64, Dependence::None),
        (Op::VAddF32, Dependence::All),
    ] {
        assert_eq!(op.facts().dependence, dependence, "{}", op.mnemonic());
    }
    let marks = |op: Op| {
        let facts = op.facts();
        (
            facts.saves_exec,
            facts.waits_for_waves,
            facts.address_by_lane,
            facts.literal,
        )
    };
    assert_eq!(marks(Op::SOrSaveexecB32), (true, false, false, None));
    assert_eq!(marks(Op::SAndNot0WrexecB64), (false, false, false, None));
    assert_eq!(marks(Op::SBarrierWait), (false, true, false, None));
    assert_eq!(marks(Op::DsGwsBarrier), (false, true, false, None));
    assert_eq!(marks(Op::SBarrierSignal), (false, false, false, None));
    assert_eq!(marks(Op::GlobalLoadAddtidB32), (false, false, true, None));
    assert_eq!(marks(Op::VFmaakF16), (false, false, false, Some(2)));
    assert_eq!(marks(Op::SFmamkF32), (false, false, false, Some(1)));
    assert!(Op::VDot2accF32F16.accumulates() && !Op::VSwapB32.accumulates() && !Op::VFmaF32.accumulates());
}

/// What locks and compare-and-swap loops are made of, through every kind of address.
#[test]
fn what_atomics_store_is_that_of_the_manual() {
    let of = |atomic: Atomic| -> Vec<&str> {
        let all = Op::ALL.iter().filter(|op| op.facts().atomic == atomic);
        all.map(|op| op.mnemonic()).collect()
    };
    let (swaps, compares) = (of(Atomic::Swap), of(Atomic::CompareAndSwap));
    for space in ["buffer", "flat", "global"] {
        for name in ["swap_b32", "swap_b64"] {
            assert!(swaps.contains(&&*format!("{space}_atomic_{name}")), "{space} {name}");
        }
        for name in ["cmpswap_b32", "cmpswap_b64", "cmpswap_f32"] {
            assert!(compares.contains(&&*format!("{space}_atomic_{name}")), "{space} {name}");
        }
    }
    for name in ["b32", "b64", "f32", "f64", "rtn_b32", "rtn_b64", "rtn_f32", "rtn_f64"] {
        assert!(compares.contains(&&*format!("ds_cmpstore_{name}")), "{name}");
    }
    assert_eq!((swaps.len(), compares.len()), (6 + 6, 9 + 8), "{swaps:?}\n{compares:?}");
    for op in Op::ALL {
        let facts = op.facts();
        let one_step = matches!(facts.memory, Memory::Atomic | Memory::Exchange);
        assert_eq!(one_step, facts.atomic != Atomic::None, "{}", facts.mnemonic);
    }
}
