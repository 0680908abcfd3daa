//! Alignment of accesses: atomics need that of their size, scalar loads that of a word. Loads and stores need none.

use super::*;
use rocmforge_amdgcn::FaultKind;
use rocmforge_isa::{Inst, Memory};

/// Where the test's accesses lie.
const AT: u32 = 256;

/// The addresses of misaligned accesses that a launch of these instructions reports, with their sizes. The address registers hold `at` and
/// `high`, as does `m0`; the descriptor in `s[8:11]` begins at [`DATA`].
fn misaligned(words: &[u32], at: u32, high: u32) -> Vec<(u64, u32)> {
    let mut asm = Asm::default();
    let zero = |reg: u32| enc::vop1(1, reg, int(0));
    let ds_store = enc::code("ds_store_b32", Format::Ds);
    // All of LDS has been written.
    asm.prologue(0, 4, 4).put(&[zero(2)]);
    asm.put(&[enc::vop2(enc::code("v_lshlrev_b32", Format::Vop2), 61, int(2), 1)]);
    for k in 0..8 {
        asm.put(&enc::ds(ds_store, 0, 61, [2, 0], 128 * k));
    }
    asm.set64(8, DATA)
        .set(10, 1024)
        .set(11, 3 << 28 | 22 << 12 | 0xfac)
        .set(5, 0);
    asm.put(&[zero(FIRST), zero(FIRST + 1), zero(FIRST + 2), zero(FIRST + 3)]);
    asm.put(&[zero(SECOND), zero(SECOND + 1)]);
    asm.set(6, at).mov(ADDRESS, 6).set(6, high).mov(ADDRESS + 1, 6);
    asm.set(enc::M0, at).set(EXEC, 1).put(words);
    let launch = Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 128],
        output: 128,
        data: &[0; 1024],
        lds: 1024,
        ..Launch::default()
    };
    let outcome = launch.launch().outcome;
    for fault in &outcome.faults {
        assert_eq!(fault.kind, FaultKind::Misaligned, "{fault}");
    }
    outcome.faults.iter().map(|fault| (fault.address, fault.size)).collect()
}

#[test]
fn every_lds_atomic_has_to_be_aligned_and_nothing_else() {
    let mut atomics = 0;
    for (encoding, _) in enc::all().iter().filter(|(encoding, _)| encoding.format == Format::Ds) {
        let name = encoding.name;
        // Registers that an instruction has no use for are 0.
        let forms = [0, RESULT]
            .into_iter()
            .flat_map(|dst| [0, FIRST].map(|first| (dst, first)));
        let forms = forms.flat_map(|(dst, first)| [(dst, [first, 0]), (dst, [first, SECOND])]);
        let mut forms = forms.map(|(dst, data)| enc::ds(encoding.code, dst, ADDRESS, data, 0));
        let Some((words, inst)) = forms.find_map(|words| Some((words, running(&words)?))) else {
            continue;
        };
        match inst.op.facts().memory {
            // Its address is that of two words by definition.
            Memory::Atomic if name.contains("condxchg32") => assert_eq!(misaligned(&words, AT + 3, 0), [], "{inst}"),
            Memory::Atomic => {
                atomics += 1;
                let size = if name.ends_with("64") { 8 } else { 4 };
                assert_eq!(misaligned(&words, AT, 0), [], "{inst}");
                for off in [1, 2, size / 2, size - 1] {
                    let at = AT + off;
                    assert_eq!(misaligned(&words, at, 0), [(at.into(), size)], "{inst}");
                }
            }
            Memory::Load | Memory::Store => assert_eq!(misaligned(&words, AT + 1, 0), [], "{inst}"),
            _ => {}
        }
    }
    assert!(atomics > 60, "{atomics}");
}

/// An instruction, if a kernel with it can run.
fn running(words: &[u32]) -> Option<Inst> {
    let program = crate::rig::load(words).ok()?;
    program.kernel("rig")?;
    decode(words, 0).ok()
}

#[test]
fn every_atomic_in_global_memory_has_to_be_aligned_and_nothing_else() {
    let mut atomics = 0;
    for (encoding, words) in enc::all() {
        let Ok(inst) = decode(words, 0) else { continue };
        let facts = inst.op.facts();
        let buffer = encoding.name.starts_with("buffer_");
        let generic = matches!(encoding.format, Format::Flat | Format::Global);
        let moves = matches!(facts.memory, Memory::Atomic | Memory::Load | Memory::Store);
        // Addresses of which only a part is in vector registers.
        if !moves || !(buffer || generic) || encoding.name.contains("addtid") || encoding.name.contains("_tr_") {
            continue;
        }
        let space = match (buffer, encoding.format) {
            (true, _) => Space::Buffer,
            (_, Format::Flat) => Space::FlatGlobal,
            _ => Space::Global,
        };
        let atomic = facts.memory == Memory::Atomic;
        let loads = atomic || facts.memory == Memory::Load;
        let words = match space {
            Space::Buffer => encode_buffer(encoding.code, loads, atomic || !loads),
            _ => encode(space, encoding.code, loads, atomic || !loads, atomic),
        };
        let Some(inst) = running(&words) else { continue };
        let (base, added) = match space {
            Space::Buffer => (0, BUFFER_OFFSET as i32),
            _ => (DATA, space.offset()),
        };
        let low = (base as u32).wrapping_add(AT).wrapping_add_signed(-added);
        let high = (base >> 32) as u32;
        let off_by = |off: u32| misaligned(&words, low + off, high);
        if atomic {
            atomics += 1;
            let wide = ["64", "_x2"].iter().any(|end| encoding.name.ends_with(end));
            let size = if wide { 8 } else { 4 };
            assert_eq!(off_by(0), [], "{inst}");
            for off in [1, 2, size / 2, size - 1] {
                assert_eq!(off_by(off), [(DATA + u64::from(AT + off), size)], "{inst}");
            }
        } else {
            assert_eq!(off_by(1), [], "{inst}");
        }
    }
    assert!(atomics > 60, "{atomics}");
}

#[test]
fn scalar_loads_have_to_be_aligned_to_words() {
    for (name, size) in [("b32", 4), ("b64", 8), ("b128", 16), ("b256", 32), ("b512", 64)] {
        for kind in ["s_load", "s_buffer_load"] {
            let code = enc::code(&format!("{kind}_{name}"), Format::Smem);
            for (register, imm, reported) in [(0, 4, 0), (2, 0, 2), (0, 3, 3), (4, 1, 5)] {
                let mut words = Asm::default();
                words.set(6, register).put(&enc::smem(code, 16, 8, 6, imm));
                let expected: Vec<(u64, u32)> = match reported {
                    0 => Vec::new(),
                    offset => vec![(DATA + offset, size)],
                };
                assert_eq!(misaligned(&words.0, 0, 0), expected, "{kind}_{name}");
            }
        }
    }
}
