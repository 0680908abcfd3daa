// 16 bytes for each thread into an LDS tile made for 8.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[128] iota", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    RF_SHARED float tile[64];
    u32 t = rf_thread();
    f4 v = *(const f4 *)(x + 4 * t);
    *(f4_lds *)(tile + 4 * t) = v; // FAULT: LdsOutOfBounds
    rf_barrier();
    y[t] = tile[t];
}

KERNEL correct(const float *x, float *y) {
    RF_SHARED float tile[128];
    u32 t = rf_thread();
    f4 v = *(const f4 *)(x + 4 * t);
    *(f4_lds *)(tile + 4 * t) = v;
    rf_barrier();
    y[t] = tile[t];
}
