// Two phases in one kernel, as if all groups had ended the first when one begins the second. It takes two kernels.
//
//# [buffers]
//# partial = "f32[4]"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 4
//# block = 32
//# args = ["partial", "f32[4]", 4]
//#+
//#+ [[launch]]
//#+ kernel = "correct_sum"
//#+ grid = 4
//#+ block = 32
//#+ args = ["partial", "f32[4]", 4]
#include "faulty.h"

KERNEL faulty(float *partial, float *y, u32 groups) {
    if (rf_thread() != 0) return;
    partial[rf_block_x()] = 1.0f; // FAULT: GlobalRace
    float sum = 0.0f;
    for (u32 k = 0; k < groups; ++k)
        sum += *(volatile float *)&partial[k]; // FAULT: GlobalRace ALSO: Uninitialised
    y[rf_block_x()] = sum;
}

KERNEL correct(float *partial, float *, u32) {
    if (rf_thread() == 0) partial[rf_block_x()] = 1.0f;
}

KERNEL correct_sum(const float *partial, float *y, u32 groups) {
    if (rf_thread() != 0) return;
    float sum = 0.0f;
    for (u32 k = 0; k < groups; ++k)
        sum += partial[k];
    y[rf_block_x()] = sum;
}
