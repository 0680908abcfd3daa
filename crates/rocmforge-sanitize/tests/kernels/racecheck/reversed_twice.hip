// Reversal in place: every pair is swapped by the group of its left element, and again by that of its right one.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 32
//# args = ["f32[64] iota"]
#include "faulty.h"

KERNEL faulty(float *x) {
    u32 i = rf_block_x() * 32 + rf_thread();
    float other = x[63 - i]; // FAULT: GlobalRace
    x[i] = other; // FAULT: GlobalRace
}

KERNEL correct(float *x) {
    u32 i = rf_block_x() * 32 + rf_thread();
    if (i >= 32) return;
    float other = x[63 - i];
    x[63 - i] = x[i];
    x[i] = other;
}
