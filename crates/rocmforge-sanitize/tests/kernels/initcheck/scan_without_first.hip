// An exclusive scan writes element i + 1 and forgets the first.
//
//# [buffers]
//# offsets = "u32[33]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["offsets"]
//#
//# [[launch]]
//# kernel = "faulty_lengths"
//# block = 32
//# args = ["offsets", "u32[32]"]
#include "faulty.h"

KERNEL faulty(u32 *offsets) {
    offsets[rf_thread() + 1] = 3 * (rf_thread() + 1);
}

KERNEL faulty_lengths(const u32 *offsets, u32 *y) {
    u32 t = rf_thread();
    y[t] = offsets[t + 1] - offsets[t]; // FAULT: Uninitialised
}

KERNEL correct(u32 *offsets) {
    offsets[rf_thread() + 1] = 3 * (rf_thread() + 1);
    if (rf_thread() == 0) offsets[0] = 0;
}

KERNEL correct_lengths(const u32 *offsets, u32 *y) {
    u32 t = rf_thread();
    y[t] = offsets[t + 1] - offsets[t];
}
