// One thread loads for all, and nobody waits for it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float scale;
    u32 t = rf_thread();
    if (t == 0) scale = x[63]; // FAULT: LdsRace
    __builtin_amdgcn_wave_barrier();
    float s = *(volatile float *)&scale; // FAULT: LdsRace ALSO: UninitialisedLds
    y[t] = x[t] * s;
}

KERNEL correct(const float *x, float *y) {
    SHARED float scale;
    u32 t = rf_thread();
    if (t == 0) scale = x[63];
    rf_barrier();
    float s = *(volatile float *)&scale;
    y[t] = x[t] * s;
}
