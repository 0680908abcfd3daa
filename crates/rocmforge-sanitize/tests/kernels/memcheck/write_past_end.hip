// `<=` where `<` is meant: the last thread writes one element past the end.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[63]", 1.0, 63]
#include "faulty.h"

KERNEL faulty(float *y, float value, u32 n) {
    u32 i = rf_thread();
    if (i <= n) y[i] = value; // FAULT: OutOfBounds
}

KERNEL correct(float *y, float value, u32 n) {
    u32 i = rf_thread();
    if (i < n) y[i] = value;
}
