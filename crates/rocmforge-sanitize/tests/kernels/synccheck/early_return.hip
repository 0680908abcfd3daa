// Threads without an element return, and the others wait for them at the barrier.
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
    rf_barrier(); // FAULT: BarrierDivergence
    y[t] = tile[n - 1 - t];
}

KERNEL correct(const float *x, float *y, u32 n) {
    SHARED float tile[64];
    u32 t = rf_thread();
    if (t < n) tile[t] = x[t];
    rf_barrier();
    if (t < n) y[t] = tile[n - 1 - t];
}
