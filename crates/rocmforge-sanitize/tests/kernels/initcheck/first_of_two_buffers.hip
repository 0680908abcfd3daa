// Double buffering that reads the other buffer in the first round, before it has ever been filled.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[64] iota", "f32[32]", 2]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 rounds) {
    SHARED float tile[2][32];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[k % 2][t] = x[32 * k + t];
        rf_barrier();
        sum += tile[(k + 1) % 2][31 - t]; // FAULT: UninitialisedLds
        rf_barrier();
    }
    y[t] = sum;
}

KERNEL correct(const float *x, float *y, u32 rounds) {
    SHARED float tile[2][32];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[k % 2][t] = x[32 * k + t];
        rf_barrier();
        sum += tile[k % 2][31 - t];
        rf_barrier();
    }
    y[t] = sum;
}
