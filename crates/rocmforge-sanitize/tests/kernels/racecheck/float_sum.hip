// An addition to a float is a plain load and a loop around a compare-and-swap, which name the address in different ways: a base beside an
// offset of the lane, and their sum. That is no race. A plain store to the same sums is one.
//
//# [buffers]
//# sums = "f32[64] zeros"
//# double_sums = "f64[64] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["sums", "double_sums", "f32[64] ones"]
#include "faulty.h"

KERNEL faulty(float *sums, double *double_sums, const float *x) {
    u32 t = rf_thread();
    if (t == 32) sums[5] = 2.0f + (float)rf_block_x(); // FAULT: GlobalRace
    atomic_add(&sums[t], x[t], RELAXED, DEVICE); // FAULT: GlobalRace
    atomic_add(&double_sums[t & 15], (double)x[t], RELAXED, DEVICE);
}

KERNEL correct(float *sums, double *double_sums, const float *x) {
    u32 t = rf_thread();
    atomic_add(&sums[t], x[t], RELAXED, DEVICE);
    atomic_add(&double_sums[t & 15], (double)x[t], RELAXED, DEVICE);
    __hip_atomic_fetch_max(&sums[t ^ 1], x[t], RELAXED, DEVICE);
    __hip_atomic_fetch_min(&double_sums[16 + (t & 15)], (double)x[t], RELAXED, DEVICE);
}
