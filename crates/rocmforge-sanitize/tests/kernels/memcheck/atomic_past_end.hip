// A histogram of 64 bins, and a value of 64.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 65
//# args = ["u32[65] iota", "u32[64] zeros"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *bins) {
    u32 bin = x[rf_thread()];
    atomic_add(&bins[bin], 1u, RELAXED, DEVICE); // FAULT: OutOfBounds
}

KERNEL correct(const u32 *x, u32 *bins) {
    u32 bin = x[rf_thread()];
    if (bin < 64) atomic_add(&bins[bin], 1u, RELAXED, DEVICE);
}
