//! Clocks: what a wave reads of them, and how they go on.
//!
//! Each wave has a time of its own: it goes on with its instructions, with its sleeps, and whenever it looks. Looks that follow each
//! other make larger and larger steps, so that a loop that waits for a time ends after some thousand rounds, whatever the time. Waves that
//! meet at a barrier go on with the latest time of all, and one that may read through memory what another has seen of the time goes on from
//! there.

use crate::exec::code::isa::Handler;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::wave::Wave;
use rocmforge_isa::Arch;

/// Cycles of an instruction of a wave.
const INSTRUCTION: u64 = 4;
/// Cycles of the first looks, and how many looks have the same number before it doubles.
const STEP: u64 = 64;
const SAME: u32 = 64;
/// Doublings, at most: no step may be longer than the 20 bits of gfx1100's shader clock can tell.
const DOUBLINGS: u32 = 13;
/// Cycles of one unit that `s_sleep` counts in.
const SLEEP: u64 = 64;
/// Frequency of the wall clock in kHz.
pub const WALL_CLOCK_KHZ: u32 = 100_000;

/// Frequency of the shader clock in kHz.
pub fn shader_clock_khz(arch: Arch) -> u32 {
    match arch {
        Arch::Gfx1100 => 2_400_000,
        Arch::Gfx1201 => 2_970_000,
    }
}

/// Cycles since the launch began, as this wave has them.
pub(crate) fn passed(w: &Wave) -> u64 {
    w.clock + INSTRUCTION * w.ran
}

/// The waves of a workgroup have met.
pub(crate) fn meet(waves: &mut [Box<Wave>]) {
    if waves.iter().all(|w| w.clock == 0) {
        return;
    }
    let latest = waves.iter().map(|w| passed(w)).max().unwrap_or(0);
    for w in waves {
        w.clock = latest - INSTRUCTION * w.ran;
    }
}

/// A wave looks at a clock: cycles since the launch began.
fn look(w: &mut Wave, c: &mut Ctx<'_>) -> u64 {
    w.clock += STEP << (w.looks / SAME).min(DOUBLINGS);
    w.looks = w.looks.saturating_add(1);
    now(w, c)
}

fn now(w: &Wave, c: &mut Ctx<'_>) -> u64 {
    let executed = (w.until - w.left).unsigned_abs();
    let cycles = w.clock + INSTRUCTION * executed;
    c.latest = c.latest.max(cycles);
    cycles
}

/// A wave does an atomic or a coherent load, which may give it a time that another wave has left: no clock shows it less from then on.
#[inline(always)]
pub(crate) fn keep_up(w: &mut Wave, c: &Ctx<'_>) {
    if c.latest > 0 {
        catch_up(w, c.latest);
    }
}

#[cold]
#[inline(never)]
fn catch_up(w: &mut Wave, latest: u64) {
    let executed = (w.until - w.left).unsigned_abs();
    let cycles = w.clock + INSTRUCTION * executed;
    w.clock += latest.saturating_sub(cycles);
}

/// The shader clock.
fn shader(c: &Ctx<'_>, cycles: u64) -> u64 {
    let before = u128::from(c.start_ns) * u128::from(c.khz) / 1_000_000;
    (before as u64).wrapping_add(cycles)
}

/// The wall clock.
fn wall(c: &Ctx<'_>, cycles: u64) -> u64 {
    let ticks = u128::from(cycles) * u128::from(WALL_CLOCK_KHZ) / u128::from(c.khz.max(1));
    (c.start_ns / 10).wrapping_add(ticks as u64)
}

/// Cycles as nanoseconds.
pub(crate) fn nanoseconds(cycles: u64, khz: u32) -> u64 {
    (u128::from(cycles) * 1_000_000 / u128::from(khz.max(1))) as u64
}

/// A field of the shader clock's lower half; `Ins::target` is the mask of the bits it has.
pub(crate) struct Cycles;
/// The same of its upper half.
pub(crate) struct CyclesHigh;
pub(crate) struct Wall32;
pub(crate) struct Wall64;
pub(crate) struct Sleep;

fn field(value: u32, imm: i32) -> u32 {
    let width = imm as u32 >> 8;
    value >> (imm as u32 & 31) & (u32::MAX >> (32 - width.clamp(1, 32)))
}

impl Handler for Cycles {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let cycles = look(w, c);
        w.set(i.dst, field(shader(c, cycles) as u32 & i.target, i.imm));
    }
}

impl Handler for CyclesHigh {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let cycles = now(w, c);
        w.set(i.dst, field((shader(c, cycles) >> 32) as u32, i.imm));
    }
}

impl Handler for Wall32 {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let cycles = look(w, c);
        w.set(i.dst, wall(c, cycles) as u32);
    }
}

impl Handler for Wall64 {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let cycles = look(w, c);
        w.set64(i.dst, wall(c, cycles));
    }
}

impl Handler for Sleep {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        w.clock += SLEEP * u64::from(i.imm as u32);
        c.attend();
    }
}
