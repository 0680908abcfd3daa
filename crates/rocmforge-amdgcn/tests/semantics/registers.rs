//! Runs one instruction over whole registers.

use crate::rig::{Asm, Done, Launch, word};
use rocmforge_amdgcn::{ExecOptions, Status};

/// A value for each lane.
pub(crate) type Reg = [u32; 32];

/// Groups of eight of the registers that there are.
pub(crate) const A: u32 = 2;
pub(crate) const B: u32 = 10;
pub(crate) const C: u32 = 18;
pub(crate) const D: u32 = 26;

/// Runs one instruction over the registers `v2` to `v33`; gives `v26` to `v33`.
pub(crate) fn run(words: &[u32], regs: &[Reg; 32]) -> [Reg; 8] {
    let done = launch(words, regs, ExecOptions::default());
    let fault = done.outcome.faults.first();
    assert_eq!(done.outcome.status, Status::Completed, "{fault:?} in {words:08x?}");
    std::array::from_fn(|r| std::array::from_fn(|lane| word(&done.output, 32 * lane + 4 * r)))
}

/// Runs instructions over the registers `v2` to `v33` and stores `v26` to `v33`, whatever they find.
pub(crate) fn launch(words: &[u32], regs: &[Reg; 32], options: ExecOptions) -> Done {
    let mut asm = Asm::default();
    asm.prologue(32, 128, 32).put(words).store(D, 4, 0).store(D + 4, 4, 16);
    let input: Vec<u8> = (0..32)
        .flat_map(|lane| regs.iter().flat_map(move |reg| reg[lane].to_le_bytes()))
        .collect();
    Launch {
        words: &asm.0,
        lanes: 32,
        input: &input,
        output: 32 * 32,
        options,
        ..Launch::default()
    }
    .launch()
}
