// A histogram that counts without atomics, in a group of one wave: lanes with the same value read the same count and write the same one
// back, so that all but one of them are lost.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] iota", "u32[8]"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    SHARED u32 bins[8];
    u32 t = rf_thread();
    if (t < 8) bins[t] = 0;
    rf_barrier();
    bins[x[t] % 8] += 1; // FAULT: LdsRace
    rf_barrier();
    if (t < 8) y[t] = bins[t];
}

KERNEL correct(const u32 *x, u32 *y) {
    SHARED u32 bins[8];
    u32 t = rf_thread();
    if (t < 8) bins[t] = 0;
    rf_barrier();
    atomic_add(&bins[x[t] % 8], 1u, RELAXED, GROUP);
    rf_barrier();
    if (t < 8) y[t] = bins[t];
}
