// An index below an array in LDS, by a distance that the kernel is given. In code that is not optimised its address is a generic one.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]", 1]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, int distance) {
    SHARED float tile[64];
    int t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    y[t] = tile[t - distance]; // FAULT: LdsOutOfBounds
}

KERNEL correct(const float *x, float *y, int distance) {
    SHARED float tile[64];
    int t = rf_thread();
    tile[t] = x[t];
    rf_barrier();
    y[t] = tile[t < distance ? 0 : t - distance];
}
