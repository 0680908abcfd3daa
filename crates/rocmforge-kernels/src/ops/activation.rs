//! SiLU, GELU and their gated forms, and the soft cap.

use crate::declared::{Again, Declared, GIB, LENGTHS, kernel};
use crate::{geometry, reference};

pub(super) const DECLARED: &[Declared] = &[SWIGLU, GELU, GELU_ERF, GEGLU, SILU, SOFTCAP];

kernel! {
    /// `y = silu(gate) * up`, element by element, as LLaMA and Qwen have it. `y` may be one of them.
    SWIGLU: swiglu in "elementwise"
    reads gate [n] of -6.0..6.0, up [n] of -2.0..2.0;
    writes y [n] over ["gate", "up"];
    count n = y.len();
    launch ("swiglu", geometry::flat(n)), with [n];
    gives |c| reference::swiglu(c.f32("gate"), c.f32("up")), within 5e-6;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = gelu(x)` by the tanh approximation, element by element: GPT-2 (`gelu_new`, `gelu_pytorch_tanh`). `y` may be `x`.
    GELU: gelu in "elementwise"
    reads x [n] of -6.0..6.0;
    writes y [n] over ["x"];
    count n = x.len();
    launch ("gelu_tanh", geometry::flat(n)), with [n];
    gives |c| reference::gelu_tanh(c.f32("x")), within 1e-6;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = x * Phi(x)` by the error function, element by element: BERT (`gelu`). `y` may be `x`.
    GELU_ERF: gelu_erf in "elementwise"
    reads x [n] of -6.0..6.0;
    writes y [n] over ["x"];
    count n = x.len();
    launch ("gelu_erf", geometry::flat(n)), with [n];
    gives |c| reference::gelu_erf(c.f32("x")), within 1e-6;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = gelu(gate) * up` with the tanh approximation, element by element, as Gemma has it. `y` may be one of them.
    GEGLU: geglu in "elementwise"
    reads gate [n] of -6.0..6.0, up [n] of -2.0..2.0;
    writes y [n] over ["gate", "up"];
    count n = y.len();
    launch ("geglu", geometry::flat(n)), with [n];
    gives |c| reference::geglu(c.f32("gate"), c.f32("up")), within 1e-5;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[];
}

kernel! {
    /// `y = x / (1 + e^-x)`, element by element. `y` may be `x`.
    SILU: silu in "elementwise"
    reads x [n] of -6.0..6.0;
    writes y [n] over ["x"];
    count n = x.len();
    launch ("silu", geometry::flat(n)), with [n];
    gives |c| c.f32("x").iter().map(|&x| reference::silu(f64::from(x))).collect(), within 2e-6;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[];
}

kernel! {
    /// `y = cap * tanh(x / cap)`, element by element, as Gemma 2 bounds its logits. `y` may be `x`.
    SOFTCAP: softcap in "elementwise"
    reads x [n] of -90.0..90.0;
    writes y [n] over ["x"];
    count n = x.len();
    numbers cap = 30.0, if cap.is_normal() && cap > 0.0, "positive and normal";
    launch ("softcap", geometry::flat(n)), with [n];
    gives |c| reference::softcap(c.f32("x"), cap), within 1.5e-5;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[];
}
