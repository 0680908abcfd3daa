// A tile that is filled again for the next round while other waves still read it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[192] iota", "f32[64]", 3]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 rounds) {
    SHARED float tile[64];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[t] = x[64 * k + t]; // FAULT: LdsRace
        rf_barrier();
        sum += tile[63 - t]; // FAULT: LdsRace
    }
    y[t] = sum;
}

KERNEL correct(const float *x, float *y, u32 rounds) {
    SHARED float tile[64];
    u32 t = rf_thread();
    float sum = 0.0f;
    for (u32 k = 0; k < rounds; ++k) {
        tile[t] = x[64 * k + t];
        rf_barrier();
        sum += tile[63 - t];
        rf_barrier();
    }
    y[t] = sum;
}
