// The barrier is there, but before the write it should follow.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    rf_barrier();
    tile[t] = x[t]; // FAULT: LdsRace
    float v = tile[t ^ 32]; // FAULT: LdsRace ALSO: UninitialisedLds
    y[t] = v;
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[64];
    u32 t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    float v = tile[t ^ 32];
    y[t] = v;
}
