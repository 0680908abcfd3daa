// A tree reduction in LDS without the barrier between its steps.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 128
//# args = ["f32[128] iota", "f32[1]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[128];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    for (u32 step = 64; step > 0; step /= 2)
        if (t < step) tile[t] += tile[t + step]; // FAULT: LdsRace
    if (t == 0) *y = tile[0];
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[128];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    for (u32 step = 64; step > 0; step /= 2) {
        if (t < step) tile[t] += tile[t + step];
        rf_barrier();
    }
    if (t == 0) *y = tile[0];
}
