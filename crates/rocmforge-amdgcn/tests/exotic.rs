//! Kernels that use every class of instruction, as two compilers write them at every level: their text against LLVM's,
//! and their results against plain Rust.
//!
//! The objects and LLVM's text are committed, so nothing needs a compiler. `cargo test -p rocmforge-amdgcn --test exotic --
//! --ignored` builds and records them again (it needs clang 19 and 22); where the tools are installed the recorded text is
//! compared with what they say now.
#![allow(clippy::print_stdout, clippy::print_stderr)] // counts belong in a test's output

#[allow(dead_code)] // most of it is for `exec`
mod card;
mod exotic {
    mod lanes;
    mod matrix;
    mod memory;
    mod numbers;
    mod objects;
    mod project;
    mod run;
    mod text;
}

/// Work-items of the launch, and elements of a slot.
const N: usize = 128;

/// What the kernels read.
struct Inputs {
    a: Vec<u32>,
    b: Vec<u32>,
    /// Whether the object was compiled to flush single-precision denormals.
    flushes: bool,
    /// Whether it was compiled with fast arithmetic.
    fast: bool,
}

/// A word that a reference does not know.
const ANY: u32 = 0x0a11_0a11;

/// What a kernel should have written, slot after slot.
type Reference = fn(&Inputs) -> Vec<u32>;

/// Builds slots element by element: `each` gives the words of one work-item.
fn slots(inputs: &Inputs, each: impl Fn(usize, u32, u32) -> Vec<u32>) -> Vec<u32> {
    let rows: Vec<Vec<u32>> = (0..N).map(|i| each(i, inputs.a[i], inputs.b[i])).collect();
    (0..rows[0].len())
        .flat_map(|slot| rows.iter().map(move |row| row[slot]))
        .collect()
}

/// The two words of a wide value.
fn words(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}
