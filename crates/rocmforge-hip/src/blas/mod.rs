//! Matrix products of hipBLAS, computed on the CPU over the memory of the simulated device: `libhipblas` and `librocblas`.
//!
//! The calls that llama.cpp makes and the commonest of vectors are here; every other name of the two libraries answers that it is not supported, and is listed when
//! the program ends. A product keeps the order of its stream: what is queued before runs first, and the call comes back when the result
//! is in device memory. In a captured stream a host function of the graph computes it each time the graph runs.
//!
//! Sizes come from the program, so each matrix is compared with the allocation that it lies in before anything is allocated or computed.

mod element;
mod gemm;
mod gemm_calls;
mod handle;
mod memory;
mod names;
mod status;
#[cfg(test)]
mod tests;
mod trsm;
mod vectors;
mod work;

pub(crate) use names::{TABLE, stubs};
