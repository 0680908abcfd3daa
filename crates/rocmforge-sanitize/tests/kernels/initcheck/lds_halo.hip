// A stencil over a tile with a border, which nobody fills.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32] iota", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[34];
    u32 t = rf_thread();
    tile[t + 1] = x[t];
    rf_barrier();
    y[t] = tile[t] + tile[t + 1] + tile[t + 2]; // FAULT: UninitialisedLds
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[34];
    u32 t = rf_thread();
    tile[t + 1] = x[t];
    if (t < 2) tile[t * 33] = 0.0f;
    rf_barrier();
    y[t] = tile[t] + tile[t + 1] + tile[t + 2];
}
