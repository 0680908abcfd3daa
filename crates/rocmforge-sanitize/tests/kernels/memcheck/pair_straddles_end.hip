// Pairs of a row of odd length: the last pair is half outside.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[63] iota", "f32[32]", 63]
#include "faulty.h"

struct Pair {
    float a, b;
};

KERNEL faulty(const float *x, float *y, u32 n) {
    u32 i = rf_thread();
    if (2 * i >= n) return;
    Pair pair = ((const Pair *)x)[i]; // FAULT: OutOfBounds
    y[i] = pair.a * pair.b;
}

KERNEL correct(const float *x, float *y, u32 n) {
    u32 i = rf_thread();
    if (2 * i >= n) return;
    Pair pair = {x[2 * i], 2 * i + 1 < n ? x[2 * i + 1] : 0.0f};
    y[i] = pair.a * pair.b;
}
