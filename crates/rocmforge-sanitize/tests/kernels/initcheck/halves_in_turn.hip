// A vector of halves in private memory is filled one by one: each turn reads all of it, written or not, and keeps what it does not replace. The
// last half is left out, and read.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f16[1024] ones", "f32[32]", 16]
#include "faulty.h"

typedef _Float16 half16 __attribute__((ext_vector_type(16)));

KERNEL faulty(const _Float16 *x, float *y, int n) {
    half16 v[4];
#pragma clang loop unroll(disable)
    for (int t = 0; t < 4; t++)
#pragma clang loop unroll(disable)
        for (int i = 0; i < 15; i++) v[t][i] = x[(t * 16 + i) * n];
    float sum = 0;
#pragma clang loop unroll(disable)
    for (int t = 0; t < 4; t++)
#pragma clang loop unroll(disable)
        for (int i = 0; i < 16; i++) sum += (float)v[t][i] * (i + t); // ALSO: UninitialisedPrivate
    y[rf_thread()] = sum; // FAULT: UninitialisedPrivate
}

KERNEL correct(const _Float16 *x, float *y, int n) {
    half16 v[4];
#pragma clang loop unroll(disable)
    for (int t = 0; t < 4; t++)
#pragma clang loop unroll(disable)
        for (int i = 0; i < 16; i++) v[t][i] = x[(t * 16 + i) * n];
    float sum = 0;
#pragma clang loop unroll(disable)
    for (int t = 0; t < 4; t++)
#pragma clang loop unroll(disable)
        for (int i = 0; i < 16; i++) sum += (float)v[t][i] * (i + t);
    y[rf_thread()] = sum;
}
