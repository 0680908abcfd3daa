// `<=` where `<` is meant: the last thread reads one element past the end.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[63] iota", "f32[64]", 63]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 n) {
    u32 i = rf_thread();
    if (i <= n) y[i] = x[i] * 2.0f; // FAULT: OutOfBounds
}

KERNEL correct(const float *x, float *y, u32 n) {
    u32 i = rf_thread();
    if (i < n) y[i] = x[i] * 2.0f;
}
