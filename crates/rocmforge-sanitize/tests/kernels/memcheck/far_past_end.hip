// A row that is taken from a longer matrix: the store lands kilobytes behind the buffer, where the next one would be.
//
//# [buffers]
//# y = "f32[8192]"
//# z = "f32[8192] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["y", "z", 9000]
#include "faulty.h"

KERNEL faulty(float *y, float *z, u32 row) {
    u32 t = rf_thread();
    y[row + t] = z[t]; // FAULT: OutOfBounds
}

KERNEL correct(float *y, float *z, u32 row) {
    u32 t = rf_thread();
    y[row % 8192 + t] = z[t];
}
