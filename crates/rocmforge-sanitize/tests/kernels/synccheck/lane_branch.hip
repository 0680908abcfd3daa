// A barrier that every other lane reaches.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    if (x[t] > 4.0f) {
        tile[t] = x[t];
        rf_barrier(); // FAULT: BarrierDivergence
    }
    y[t] = tile[t]; // ALSO: BarrierDivergence
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    if (x[t] > 4.0f) tile[t] = x[t];
    rf_barrier();
    y[t] = tile[t];
}
