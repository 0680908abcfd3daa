// A table with one entry for each group: a scalar load, the same for all lanes. The grid has one group more.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 3
//# block = 32
//# args = ["f32[96] iota", "f32[2] ones", "f32[96]", 2]
#include "faulty.h"

KERNEL faulty(const float *x, const float *scale, float *y, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    float s = scale[rf_block_x()]; // FAULT: OutOfBounds
    y[i] = x[i] * s + (float)n;
}

KERNEL correct(const float *x, const float *scale, float *y, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    float s = rf_block_x() < n ? scale[rf_block_x()] : 1.0f;
    y[i] = x[i] * s + (float)n;
}
