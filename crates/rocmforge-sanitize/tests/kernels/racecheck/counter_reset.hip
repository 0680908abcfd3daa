// A counter that others take numbers from is reset with a plain store.
//
//# [buffers]
//# counter = "u32[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["counter", "u32[128]"]
#include "faulty.h"

KERNEL faulty(u32 *counter, u32 *y) {
    u32 at = rf_block_x() * 64 + rf_thread();
    u32 number = atomic_add(counter, 1u, RELAXED, DEVICE); // FAULT: GlobalRace
    y[at] = number;
    if (number == 63) *counter = 0; // FAULT: GlobalRace
}

KERNEL correct(u32 *counter, u32 *y) {
    u32 at = rf_block_x() * 64 + rf_thread();
    u32 number = atomic_add(counter, 1u, RELAXED, DEVICE);
    y[at] = number;
    if (number == 63) atomic_exchange(counter, 0u, RELAXED, DEVICE);
}
