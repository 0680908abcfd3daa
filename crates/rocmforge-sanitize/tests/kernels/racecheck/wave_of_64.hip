// A reduction written for waves of 64, whose last steps need no barrier. Waves have 32 lanes here.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 128
//# args = ["f32[128] iota", "f32[1]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED volatile float tile[128];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    if (t < 64) {
        tile[t] += tile[t + 64]; // FAULT: LdsRace
        if (t < 32) tile[t] += tile[t + 32]; // FAULT: LdsRace
        for (u32 step = 16; step > 0; step /= 2)
            if (t < step) tile[t] += tile[t + step];
    }
    if (t == 0) *y = tile[0];
}

KERNEL correct(const float *x, float *y) {
    SHARED volatile float tile[128];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    if (t < 64) tile[t] += tile[t + 64];
    rf_barrier();
    if (t < 32) {
        tile[t] += tile[t + 32];
        for (u32 step = 16; step > 0; step /= 2)
            if (t < step) tile[t] += tile[t + step];
    }
    if (t == 0) *y = tile[0];
}
