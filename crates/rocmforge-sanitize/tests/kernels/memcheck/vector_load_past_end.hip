// Four elements at a time, and a length that is no multiple of four.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 16
//# args = ["f32[62] iota", "f32[64]", 62]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 n) {
    u32 i = rf_thread() * 4;
    if (i >= n) return;
    f4 v = *(const f4 *)(x + i); // FAULT: OutOfBounds
    *(f4 *)(y + i) = v * 2.0f;
}

KERNEL correct(const float *x, float *y, u32 n) {
    u32 i = rf_thread() * 4;
    if (i >= n) return;
    f4 v = rf_load4(x + i, rf_left4(i, n));
    *(f4 *)(y + i) = v * 2.0f;
}
