// An optional argument that is taken for granted.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32] iota", 0, "f32[32]"]
#include "faulty.h"

KERNEL faulty(const float *x, const float *bias, float *y) {
    u32 t = rf_thread();
    y[t] = x[t] + bias[t]; // FAULT: OutOfBounds
}

KERNEL correct(const float *x, const float *bias, float *y) {
    u32 t = rf_thread();
    y[t] = x[t] + (bias ? bias[t] : 0.0f);
}
