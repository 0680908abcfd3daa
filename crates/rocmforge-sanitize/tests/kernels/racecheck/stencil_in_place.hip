// A stencil that writes into the array it reads: the neighbouring group may have been there or not.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 32
//# args = ["f32[66] iota", "f32[66] zeros"]
#include "faulty.h"

KERNEL faulty(float *x, float *) {
    u32 i = rf_block_x() * 32 + rf_thread() + 1;
    x[i] = (x[i - 1] + x[i + 1]) * 0.5f; // FAULT: GlobalRace
}

KERNEL correct(float *x, float *y) {
    u32 i = rf_block_x() * 32 + rf_thread() + 1;
    y[i] = (x[i - 1] + x[i + 1]) * 0.5f;
}
