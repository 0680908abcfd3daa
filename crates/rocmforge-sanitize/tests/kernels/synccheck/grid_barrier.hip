// A barrier of the whole grid: each group counts itself and waits until all have come. Where one never comes, the others wait for ever.
//
//# budget = 4000000
//#
//# [buffers]
//# count = "u32[1] zeros"
//# values = "f32[8] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 8
//# block = 64
//# args = ["count", "values", "f32[8]"]
#include "faulty.h"

RF_DEVICE void meet(u32 *count, u32 groups) {
    rf_barrier();
    if (rf_thread() == 0) {
        atomic_add(count, 1u, ACQ_REL, DEVICE);
        while (atomic_load(count, ACQUIRE, DEVICE) < groups) // FAULT: EndlessKernel
            __builtin_amdgcn_s_sleep(1); // FAULT: EndlessKernel
    }
    rf_barrier();
}

KERNEL faulty(u32 *count, float *values, float *y) {
    u32 group = rf_block_x();
    if (group == 5) return;
    if (rf_thread() == 0) values[group] = (float)group;
    meet(count, 8);
    if (rf_thread() == 0) y[group] = values[(group + 1) % 5];
}

KERNEL correct(u32 *count, float *values, float *y) {
    u32 group = rf_block_x();
    if (rf_thread() == 0) values[group] = (float)group;
    meet(count, 8);
    if (rf_thread() == 0) y[group] = values[(group + 1) % 8];
    meet(count, 16);
    if (rf_thread() == 0) values[group] = y[(group + 3) % 8];
}
