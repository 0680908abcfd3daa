// Only the threads with an element write their place of the tile; the sum takes all places.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[40] iota", "f32[1]", 40]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 n) {
    SHARED float tile[64];
    u32 t = rf_thread();
    if (t < n) tile[t] = x[t];
    rf_barrier();
    if (t != 0) return;
    float sum = 0.0f;
    for (u32 k = 0; k < 64; ++k)
        sum += tile[k]; // FAULT: UninitialisedLds
    *y = sum;
}

KERNEL correct(const float *x, float *y, u32 n) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = t < n ? x[t] : 0.0f;
    rf_barrier();
    if (t != 0) return;
    float sum = 0.0f;
    for (u32 k = 0; k < 64; ++k)
        sum += tile[k];
    *y = sum;
}
