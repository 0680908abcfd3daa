// A transpose in place, a row to a group: each element is written by another group than the one that reads it.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 8
//# block = 8
//# args = ["f32[64] iota", "f32[64] zeros"]
#include "faulty.h"

KERNEL faulty(float *x, float *) {
    u32 row = rf_block_x(), column = rf_thread();
    x[column * 8 + row] = x[row * 8 + column]; // FAULT: GlobalRace
}

KERNEL correct(float *x, float *y) {
    u32 row = rf_block_x(), column = rf_thread();
    y[column * 8 + row] = x[row * 8 + column];
}
