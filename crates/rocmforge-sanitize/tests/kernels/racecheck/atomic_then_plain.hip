// One wave adds to LDS with atomics, the other without.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64] iota", "u32[1]"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    SHARED u32 sum;
    u32 t = rf_thread();
    if (t == 0) sum = 0;
    rf_barrier();
    if (t < 32) atomic_add(&sum, x[t], RELAXED, GROUP); // FAULT: LdsRace
    if (t == 40) *(volatile u32 *)&sum += 1; // FAULT: LdsRace
    rf_barrier();
    if (t == 40) *y = sum;
}

KERNEL correct(const u32 *x, u32 *y) {
    SHARED u32 sum;
    u32 t = rf_thread();
    if (t == 0) sum = 0;
    rf_barrier();
    if (t < 32) atomic_add(&sum, x[t], RELAXED, GROUP);
    if (t == 40) atomic_add(&sum, 1u, RELAXED, GROUP);
    rf_barrier();
    if (t == 40) *y = sum;
}
