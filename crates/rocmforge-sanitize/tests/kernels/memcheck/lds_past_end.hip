// A shifted write into LDS: the last thread misses the tile.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]", 1]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 shift) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    rf_barrier();
    tile[t + shift] = x[t]; // FAULT: LdsOutOfBounds
    rf_barrier();
    y[t] = tile[t];
}

KERNEL correct(const float *x, float *y, u32 shift) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = 0.0f;
    rf_barrier();
    tile[(t + shift) % 64] = x[t];
    rf_barrier();
    y[t] = tile[t];
}
