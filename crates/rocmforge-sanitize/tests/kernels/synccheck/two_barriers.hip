// A barrier in each arm of a branch, which the waves of the workgroup take differently.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    if (t < 32) {
        rf_barrier(); // FAULT: BarrierDivergence
        y[t] = 2.0f * tile[63 - t];
    } else {
        rf_barrier(); // FAULT: BarrierDivergence
        y[t] = tile[63 - t];
    }
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    if (t < 32) {
        y[t] = 2.0f * tile[63 - t];
    } else {
        y[t] = tile[63 - t];
    }
}
