//! Loads of gfx1201 that transpose a matrix of 16 rows on its way into the registers of a matrix instruction.
//!
//! Each lane loads eight elements that lie one after the other, and gets eight that lie below each other. AMD's text names
//! the instructions and does not say which lane gives what to which. The order here is the one that programs count on
//! which were checked on cards: of halves, each eight lanes exchange a square of eight; of bytes, each sixteen lanes do
//! with eight rows of sixteen.

use crate::exec::code::isa::Handler;
use crate::exec::memory::load::words;
use crate::exec::memory::space::Space;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::wave::Wave;
use std::marker::PhantomData;

/// `R` registers: two of bytes (`global_load_tr_b64`) or four of halves (`global_load_tr_b128`). Elements of lanes that are
/// off are what their registers held.
pub(crate) struct Transposed<S, const R: usize>(PhantomData<S>);

/// Lane and element that element `n` of lane `l` comes from.
fn from(l: usize, n: usize, bytes: bool) -> (usize, usize) {
    let lane = if bytes {
        l & 16 | n >> 2 << 3 | l >> 1 & 4 | n & 3
    } else {
        l & 24 | n
    };
    (lane, l & 7)
}

impl<S: Space, const R: usize> Handler for Transposed<S, R> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        words::<S, R>(w, c, i, &at, i.dst);
        let reg = |r: usize| (i.dst as usize + r) & 255;
        let loaded: [[u32; 32]; R] = std::array::from_fn(|r| w.v[reg(r)].0);
        // Elements of a register, and bits of an element: eight elements in all.
        let per = 8 / R;
        let bits = 32 / per;
        let element = |l: usize, n: usize| loaded[n / per][l] >> (n % per * bits) & (u32::MAX >> (32 - bits));
        for r in 0..R {
            let out = std::array::from_fn(|l| {
                (0..per).fold(0, |word, k| {
                    let (lane, n) = from(l, r * per + k, R == 2);
                    word | element(lane, n) << (k * bits)
                })
            });
            w.put(reg(r) as u8, &out);
        }
    }
}
