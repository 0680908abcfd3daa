// A sum through a resource descriptor, read and written back. The corrected kernel swaps it where it is still what was read.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["u32[64] iota", "u32[1] zeros"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *sum) {
    Buffer b = buffer_of(sum, 4);
    u32 t = rf_thread();
    buffer_store(buffer_load(b, 0) + x[t], b, 0); // FAULT: GlobalRace
}

KERNEL correct(const u32 *x, u32 *sum) {
    Buffer b = buffer_of(sum, 4);
    u32 t = rf_thread();
    u32 old = buffer_load(b, 0), expected;
    do {
        expected = old;
        old = buffer_compare_and_swap(expected + x[t], expected, b, 0, 0, 0);
    } while (old != expected);
}
