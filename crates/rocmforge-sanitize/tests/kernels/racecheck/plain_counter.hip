// One counter for all groups, and a plain increment.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 4
//# block = 32
//# args = ["u32[1] zeros"]
#include "faulty.h"

KERNEL faulty(u32 *count) {
    if (rf_thread() == 0) *count += 1; // FAULT: GlobalRace
}

KERNEL correct(u32 *count) {
    if (rf_thread() == 0) atomic_add(count, 1u, RELAXED, DEVICE);
}
