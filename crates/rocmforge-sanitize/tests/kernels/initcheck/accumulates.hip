// Adds to an output that nobody has set.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32] iota", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    u32 t = rf_thread();
    y[t] += x[t]; // FAULT: Uninitialised
}

KERNEL correct(const float *x, float *y) {
    u32 t = rf_thread();
    y[t] = x[t];
}
