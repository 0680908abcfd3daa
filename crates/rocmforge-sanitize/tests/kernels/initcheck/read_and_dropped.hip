// The last threads read past what was written of a tile. Where the value is dropped, nothing depends on it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64]"]
#include "faulty.h"

SHARED volatile float tile[128];

KERNEL faulty(float *y) {
    u32 t = rf_thread();
    tile[t] = (float)t;
    rf_barrier();
    float next = tile[t + 8]; // FAULT: UninitialisedLds
    y[t] = t < 60 ? next * 2.0f : 0.0f;
}

KERNEL correct(float *y) {
    u32 t = rf_thread();
    tile[t] = (float)t;
    rf_barrier();
    float next = tile[t + 8];
    y[t] = t < 56 ? next * 2.0f : 0.0f;
}
