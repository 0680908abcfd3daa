// Differences of neighbours: the first element has no left one.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    i32 i = (i32)rf_thread();
    float left = x[i - 1]; // FAULT: OutOfBounds
    y[i] = x[i] - left;
}

KERNEL correct(const float *x, float *y) {
    i32 i = (i32)rf_thread();
    float left = i > 0 ? x[i - 1] : 0.0f;
    y[i] = x[i] - left;
}
