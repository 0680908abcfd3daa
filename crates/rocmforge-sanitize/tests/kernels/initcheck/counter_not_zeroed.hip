// The counter that is set to zero is not the one that counts.
//
//# [buffers]
//# counters = "u32[2]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["counters"]
//#
//# [[launch]]
//# kernel = "faulty_count"
//# block = 32
//# args = ["counters"]
#include "faulty.h"

KERNEL faulty(u32 *counters) {
    if (rf_thread() == 0) counters[1] = 0;
}

KERNEL faulty_count(u32 *counters) {
    atomic_add(&counters[0], rf_thread(), RELAXED, DEVICE); // FAULT: Uninitialised
}

KERNEL correct(u32 *counters) {
    if (rf_thread() == 0) counters[0] = 0;
}

KERNEL correct_count(u32 *counters) {
    atomic_add(&counters[0], rf_thread(), RELAXED, DEVICE);
}
