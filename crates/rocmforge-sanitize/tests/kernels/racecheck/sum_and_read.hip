// Every group adds to a total and uses it at once, as if all had added.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 3
//# block = 32
//# args = ["u32[1] zeros", "u32[3]"]
#include "faulty.h"

KERNEL faulty(u32 *total, u32 *y) {
    if (rf_thread() != 0) return;
    atomic_add(total, rf_block_x() + 1, RELAXED, DEVICE); // FAULT: GlobalRace
    y[rf_block_x()] = *total; // FAULT: GlobalRace
}

KERNEL correct(u32 *total, u32 *y) {
    if (rf_thread() != 0) return;
    u32 before = atomic_add(total, rf_block_x() + 1, RELAXED, DEVICE);
    y[rf_block_x()] = before;
}
