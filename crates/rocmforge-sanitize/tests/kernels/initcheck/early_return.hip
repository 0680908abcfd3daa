// Threads without an element return before a barrier, which counts those that have not ended. The others read what the former would have written.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]", 40]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 n) {
    SHARED float tile[64];
    u32 t = rf_thread();
    if (t >= n) return;
    tile[t] = x[t];
    rf_barrier();
    y[t] = tile[63 - t]; // FAULT: UninitialisedLds
}

KERNEL correct(const float *x, float *y, u32 n) {
    SHARED float tile[64];
    u32 t = rf_thread();
    if (t >= n) return;
    tile[t] = x[t];
    rf_barrier();
    y[t] = tile[n - 1 - t];
}
