// The group that finishes last adds up what all have written. It knows that it is the last, but nothing makes the others'
// sums visible to it: the ticket is drawn without a fence before and after.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 3
//# block = 32
//# args = ["u32[3]", "u32[1] zeros", "u32[1]", 3]
#include "faulty.h"

KERNEL faulty(u32 *partial, u32 *tickets, u32 *y, u32 groups) {
    if (rf_thread() != 0) return;
    partial[rf_block_x()] = rf_block_x() + 1; // FAULT: GlobalRace
    if (atomic_add(tickets, 1u, RELAXED, DEVICE) != groups - 1) return;
    u32 sum = 0;
    for (u32 k = 0; k < groups; ++k)
        sum += partial[k]; // FAULT: GlobalRace
    *y = sum;
}

KERNEL correct(u32 *partial, u32 *tickets, u32 *y, u32 groups) {
    if (rf_thread() != 0) return;
    partial[rf_block_x()] = rf_block_x() + 1;
    device_fence();
    if (atomic_add(tickets, 1u, RELAXED, DEVICE) != groups - 1) return;
    device_fence();
    u32 sum = 0;
    for (u32 k = 0; k < groups; ++k)
        sum += partial[k];
    *y = sum;
}
