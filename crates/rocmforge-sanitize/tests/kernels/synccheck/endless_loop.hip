// A grid-stride loop with a stride of 0.
//
//# budget = 20000
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[64] iota", "f32[32]", 64, 0]
#include "faulty.h"

KERNEL faulty(const float *x, float *y, u32 n, u32 stride) {
    float sum = 0.0f;
    for (u32 i = rf_thread(); i < n; i += stride) // FAULT: EndlessKernel
        sum += *(volatile const float *)&x[i]; // FAULT: EndlessKernel
    y[rf_thread()] = sum;
}

KERNEL correct(const float *x, float *y, u32 n, u32 stride) {
    float sum = 0.0f;
    for (u32 i = rf_thread(); i < n; i += stride > 0 ? stride : 32)
        sum += *(volatile const float *)&x[i];
    y[rf_thread()] = sum;
}
