// Pairs of half-precision numbers, the last of which has one written half: adding pairs adds the halves by themselves.
//
//# [buffers]
//# x = { dtype = "f16", shape = 64, fill = "ones", written = ["0..63"] }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["x", "f16[64] zeros", "f32[32]"]
#include "faulty.h"

typedef _Float16 Pair __attribute__((ext_vector_type(2)));

KERNEL faulty(const Pair *x, _Float16 *y, float *z) {
    u32 t = rf_thread();
    Pair pair = x[t]; // FAULT: Uninitialised
    Pair sum = pair + pair;
    y[2 * t] = sum.x;
    y[2 * t + 1] = sum.y;
    z[t] = (float)pair.x;
}

KERNEL correct(const Pair *x, _Float16 *y, float *z) {
    u32 t = rf_thread();
    Pair pair = x[t];
    Pair sum = pair + pair;
    y[2 * t] = sum.x;
    if (t < 31) y[2 * t + 1] = sum.y;
    z[t] = (float)pair.x;
}
