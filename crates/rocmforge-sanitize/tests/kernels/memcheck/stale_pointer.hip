// A pointer is kept over a free, and the next allocation has the same size.
//
//# [buffers]
//# x = "f32[64] iota"
//# y = "f32[64]"
//# z = "f32[64]"
//#
//# [[step]]
//# alloc = "y"
//#-[[step]]
//#-free = "y"
//# [[step]]
//# alloc = "z"
//# [[step]]
//# launch = "faulty"
//# block = 64
//# args = ["x", "y"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    u32 t = rf_thread();
    y[t] = x[t] + 1.0f; // FAULT: UseAfterFree
}

KERNEL correct(const float *x, float *y) {
    u32 t = rf_thread();
    y[t] = x[t] + 1.0f;
}
