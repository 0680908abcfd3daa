// Four elements for each thread, all four always.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 16
//# args = ["f32[62]", 62]
#include "faulty.h"

KERNEL faulty(float *y, u32 n) {
    u32 i = rf_thread() * 4;
    for (u32 k = 0; k < 4 && i < n; ++k)
        y[i + k] = (float)k; // FAULT: OutOfBounds
}

KERNEL correct(float *y, u32 n) {
    u32 i = rf_thread() * 4;
    for (u32 k = 0; k < 4 && i + k < n; ++k)
        y[i + k] = (float)k;
}
