//! Branches, calls and the program counter.

use crate::ARCH;
use crate::enc::{self, EXEC, VCC, int};
use crate::refused::reason;
use crate::rig::{Asm, Launch, load, word};
use crate::valu::{lowers, named};
use rocmforge_isa::{Arch, Format, Op};

/// Runs the words in one wave and gives `s20` to `s23`, which start as 0.
fn run(words: &[u32]) -> [u32; 4] {
    let mut asm = Asm::default();
    asm.prologue(0, 4, 16);
    for reg in 20..24 {
        asm.set(reg, 0);
    }
    asm.put(words).put(&[enc::sop1(0, EXEC, int(-1))]);
    for n in 0..4 {
        asm.mov(40 + n, 20 + n);
    }
    asm.store(40, 4, 0);
    let done = Launch {
        words: &asm.0,
        lanes: 32,
        input: &[0; 4],
        output: 16 * 32,
        ..Launch::default()
    }
    .run();
    [0, 4, 8, 12].map(|at| word(&done.output, at))
}

fn sopp(name: &str, words: u16) -> u32 {
    0xbf80_0000 | enc::code(name, Format::Sopp) << 16 | u32::from(words)
}

fn s_mov(dst: u32, src: u32) -> u32 {
    enc::sop1(0, dst, src)
}

type Branch = (&'static str, u32, fn(bool) -> bool);

/// What a conditional branch looks at, and whether a value makes it jump.
const BRANCHES: [Branch; 6] = [
    ("s_cbranch_scc0", 0, |set| !set),
    ("s_cbranch_scc1", 0, |set| set),
    ("s_cbranch_vccz", VCC, |set| !set),
    ("s_cbranch_vccnz", VCC, |set| set),
    ("s_cbranch_execz", EXEC, |set| !set),
    ("s_cbranch_execnz", EXEC, |set| set),
];

#[test]
fn conditional_branches() {
    let equal = enc::code("s_cmp_eq_u32", Format::Sopc);
    for (name, register, taken) in BRANCHES {
        for set in [false, true] {
            let condition = match register {
                0 => enc::sopc(equal, int(1), int(i32::from(set))),
                register => s_mov(register, int(if set { 8 } else { 0 })),
            };
            // Forwards over a move.
            let [skipped, after, ..] = run(&[condition, sopp(name, 1), s_mov(20, int(1)), s_mov(21, int(1))]);
            assert_eq!((skipped, after), (u32::from(!taken(set)), 1), "{name}, condition {set}");
        }
    }
}

#[test]
fn branches_go_back() {
    // s20 counts to 5: s_add_u32 s20, s20, 1; s_cmp_lt_u32 s20, 5; s_cbranch_scc1 -3
    let add = enc::sop2(enc::code("s_add_u32", Format::Sop2), 20, 20, int(1));
    let less = enc::sopc(enc::code("s_cmp_lt_u32", Format::Sopc), 20, int(5));
    assert_eq!(run(&[add, less, sopp("s_cbranch_scc1", 0xfffd)])[0], 5);
    assert_eq!(
        run(&[sopp("s_branch", 1), s_mov(20, int(1)), s_mov(21, int(2))]),
        [0, 2, 0, 0]
    );
}

#[test]
fn the_program_counter_is_that_of_the_next_instruction() {
    let get = enc::code("s_getpc_b64", Format::Sop1);
    let [low, high, again, _] = run(&[enc::sop1(get, 20, 0), enc::sop1(get, 22, 0)]);
    assert_eq!(again, low + 4);
    let program = load(&[]).expect("the rig");
    let pc = u64::from(low) | u64::from(high) << 32;
    assert!((program.base()..program.base() + program.size()).contains(&pc));
}

#[test]
fn registers_of_the_trap_handler_that_nothing_sets_are_not_read() {
    const TTMP0: u32 = 108;
    for n in 0..16 {
        let set = crate::ARCH == Arch::Gfx1201 && (7..=9).contains(&n);
        let words = [s_mov(20, TTMP0 + n)];
        assert_eq!(lowers(&words), set, "ttmp{n}");
    }
}

#[test]
fn jumps_through_registers() {
    let get = enc::sop1(enc::code("s_getpc_b64", Format::Sop1), 24, 0);
    let add = enc::code("s_add_u32", Format::Sop2);
    let set = enc::code("s_setpc_b64", Format::Sop1);
    let swap = enc::code("s_swappc_b64", Format::Sop1);
    // s[24:25] = here; here + 12 is the instruction behind the move.
    let words = [
        get,
        enc::sop2(add, 24, 24, int(12)),
        enc::sop1(set, 0, 24),
        s_mov(20, int(1)),
        s_mov(21, int(1)),
    ];
    assert_eq!(run(&words)[..2], [0, 1]);
    // The same with a return address in s[22:23], which is where the move is.
    let words = [
        get,
        s_mov(26, 24),
        enc::sop2(add, 24, 24, int(16)),
        enc::sop1(swap, 22, 24),
        s_mov(20, int(1)),
        enc::sop2(enc::code("s_sub_u32", Format::Sop2), 22, 22, 26),
    ];
    assert_eq!(run(&words)[..3], [0, 0, 12]);
    // s_call_b64 s[22:23], over one instruction.
    let call = enc::code("s_call_b64", Format::Sopk);
    let words = [
        get,
        enc::sopk(call, 22, 1),
        s_mov(20, int(1)),
        enc::sop2(enc::code("s_sub_u32", Format::Sop2), 22, 22, 24),
    ];
    assert_eq!(run(&words)[..3], [0, 0, 4]);
}

/// The mode that kernels start in, set again, changes nothing.
#[test]
fn the_default_modes() {
    let words = [sopp("s_round_mode", 0), sopp("s_denorm_mode", 15), s_mov(20, int(1))];
    assert_eq!(run(&words)[0], 1);
}

/// `hwreg(HW_REG_MODE, offset, width)`.
fn mode(offset: u32, width: u32) -> u16 {
    (1 | offset << 6 | (width - 1) << 11) as u16
}

#[test]
fn fields_of_the_mode_register() {
    let set = enc::code("s_setreg_b32", Format::Sopk);
    let set_literal = enc::code("s_setreg_imm32_b32", Format::Sopk);
    let get = enc::code("s_getreg_b32", Format::Sopk);
    // Round to nearest, denormals kept, NaN clamped, IEEE: in the lowest ten bits.
    let [before, ..] = run(&[enc::sopk(get, 20, mode(0, 10))]);
    assert_eq!(before, 0x3f0);
    for offset in 0..10 {
        for width in 1..=10 - offset {
            let mask = (1 << width) - 1;
            let value = 0x2a5 ^ offset * 7;
            let model = before & !(mask << offset) | (value & mask) << offset;
            let back = [enc::sopk(get, 21, mode(0, 10)), enc::sopk(get, 22, mode(offset, width))];
            let by_register = [
                enc::sop1(0, 30, enc::LITERAL),
                value,
                enc::sopk(set, 30, mode(offset, width)),
            ];
            let by_literal = [enc::sopk(set_literal, 0, mode(offset, width)), value];
            for words in [&by_register[..], &by_literal] {
                let [_, all, field, _] = run(&[words, &back].concat());
                assert_eq!((all, field), (model, value & mask), "offset {offset}, width {width}");
            }
        }
    }
}

/// `hwreg(id, offset, width)`.
fn field(id: u32, offset: u32, width: u32) -> u16 {
    (id | offset << 6 | (width - 1) << 11) as u16
}

/// What a program could not tell from a true value is no 0.
#[test]
fn hardware_registers_without_a_value_are_refused() {
    let get = enc::code("s_getreg_b32", Format::Sopk);
    let why = |id, offset, width| reason(&[enc::sopk(get, 20, field(id, offset, width))]);
    let gfx1100 = ARCH == Arch::Gfx1100;
    // Mode, place of the wave, clock.
    for (id, width) in [(1, 32), (23, 32), (29, 20)] {
        assert_eq!(why(id, 0, width), None, "{id}");
    }
    // Apertures, and bits of the status register: scc, execz and vccz.
    for (id, offset, width) in [(15, 0, 32), (2, 0, 1), (2, 9, 2)] {
        assert_eq!(why(id, offset, width).is_none(), gfx1100, "{id}");
    }
    assert_eq!(why(30, 0, 32).is_none(), !gfx1100);
    // All of the status, exceptions, instruction buffer, queue and process, trap handlers.
    for id in (0..64).filter(|id| ![1, 15, 23, 29, 30].contains(id)) {
        assert!(why(id, 0, 32).is_some(), "{id}");
    }
    for (id, width, part) in [
        (2, 3, "status"),
        (3, 5, "exceptions"),
        (24, 4, "queues"),
        (18, 8, "hardware register"),
    ] {
        let why = why(id, 0, width).expect("refused");
        assert!(!gfx1100 && id < 15 || why.contains(part), "{id}: {why}");
    }
    let set = enc::code("s_setreg_imm32_b32", Format::Sopk);
    let why = reason(&[enc::sopk(set, 0, field(18, 0, 8)), 0]).expect("refused");
    assert!(why.contains("other than the mode"), "{why}");
}

#[test]
fn bits_of_the_status_register() {
    if ARCH != Arch::Gfx1100 {
        return;
    }
    let get = enc::code("s_getreg_b32", Format::Sopk);
    let compare = enc::code("s_cmp_eq_i32", Format::Sopc);
    for (other, scc) in [(5, 1), (6, 0)] {
        let words = [
            s_mov(enc::VCC, int(other - 5)),
            enc::sopc(compare, int(5), int(other)),
            enc::sopk(get, 20, field(2, 0, 1)),
            enc::sopk(get, 21, field(2, 9, 1)),
            enc::sopk(get, 22, field(2, 10, 1)),
        ];
        let [found, execz, vccz, _] = run(&words);
        assert_eq!((found, execz, vccz), (scc, 0, u32::from(other == 5)), "scc {scc}");
    }
}

pub(crate) fn ops() -> Vec<Op> {
    let branches = BRANCHES.map(|(name, ..)| name);
    let others = [
        "s_branch",
        "s_getpc_b64",
        "s_setpc_b64",
        "s_swappc_b64",
        "s_call_b64",
        "s_round_mode",
        "s_denorm_mode",
        "s_setreg_b32",
        "s_setreg_imm32_b32",
        "s_getreg_b32",
    ];
    branches.into_iter().chain(others).filter_map(named).collect()
}
