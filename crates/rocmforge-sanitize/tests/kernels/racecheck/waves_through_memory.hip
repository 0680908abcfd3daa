// Two waves of a group exchange values through global memory and do not wait for each other.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *scratch, float *y) {
    u32 t = rf_thread();
    scratch[t] = x[t] * 2.0f; // FAULT: GlobalRace
    y[t] = *(volatile float *)&scratch[63 - t]; // FAULT: GlobalRace ALSO: Uninitialised
}

KERNEL correct(const float *x, float *scratch, float *y) {
    u32 t = rf_thread();
    scratch[t] = x[t] * 2.0f;
    rf_barrier();
    y[t] = *(volatile float *)&scratch[63 - t];
}
