// An inclusive scan in place: a thread overwrites what its right neighbours have still to read.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64] ones", "u32[64]"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    SHARED u32 tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    for (u32 step = 1; step < 64; step *= 2) {
        if (t >= step) tile[t] += tile[t - step]; // FAULT: LdsRace
        rf_barrier();
    }
    y[t] = tile[t];
}

KERNEL correct(const u32 *x, u32 *y) {
    SHARED u32 tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    for (u32 step = 1; step < 64; step *= 2) {
        u32 left = t >= step ? tile[t - step] : 0;
        rf_barrier();
        tile[t] += left;
        rf_barrier();
    }
    y[t] = tile[t];
}
