//! Facts of operations against the instruction set's manual, for one operation or more of each kind.

use rocmforge_isa::{Atomic, Flow, Memory, Op, Registers, Ty, Unit};

/// Registers an operation uses without naming them: read, then written.
#[test]
fn hidden_registers_are_those_of_the_manual() {
    const R: [Registers; 6] = [
        Registers::SCC,
        Registers::VCC,
        Registers::EXEC,
        Registers::M0,
        Registers::MODE,
        Registers::DST,
    ];
    const NAMES: [&str; 6] = ["scc", "vcc", "exec", "m0", "mode", "dst"];
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
        (Op::VSwapB32, "exec dst", ""),
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
