// A small array of each thread, which the compiler keeps in registers, and an index that is none of its.
//
//# [buffers]
//# index = "u32[1] 200"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["index", "f32[256] iota", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const u32 *index, const float *x, float *y) {
    u32 t = rf_thread();
    float own[8];
    for (u32 k = 0; k < 8; k++) own[k] = x[8 * t + k];
    y[t] = own[index[0]]; // FAULT: RegisterOutOfRange
}

KERNEL correct(const u32 *index, const float *x, float *y) {
    u32 t = rf_thread();
    float own[8];
    for (u32 k = 0; k < 8; k++) own[k] = x[8 * t + k];
    y[t] = own[index[0] & 7];
}
