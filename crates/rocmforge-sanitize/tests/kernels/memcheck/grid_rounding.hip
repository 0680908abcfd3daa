// Three groups of 32 for 70 elements, and no check.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 3
//# block = 32
//# args = ["f32[70]", 70]
#include "faulty.h"

KERNEL faulty(float *y, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    y[i] = (float)(n - i); // FAULT: OutOfBounds
}

KERNEL correct(float *y, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    if (i < n) y[i] = (float)(n - i);
}
