// Neighbours in LDS without a barrier. Inside a wave it works; only where two waves meet it does not.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = x[t]; // FAULT: LdsRace
    __builtin_amdgcn_wave_barrier();
    float right = tile[t < 63 ? t + 1 : 63]; // FAULT: LdsRace ALSO: UninitialisedLds
    y[t] = right - x[t];
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    float right = tile[t < 63 ? t + 1 : 63];
    y[t] = right - x[t];
}
