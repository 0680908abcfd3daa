// One wave hands a value to another of its group through a flag in global memory, with the scope of the group. Who reads the flag
// without an acquire may find the value's old line in a cache.
//
//# [buffers]
//# flag = "u32[1] zeros"
//# value = "f32[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["flag", "f32[64] ones", "value", "f32[64]"]
#include "faulty.h"

KERNEL faulty(u32 *flag, const float *x, float *value, float *y) {
    u32 t = rf_thread();
    if (t == 0) {
        *value = x[0]; // FAULT: GlobalRace
        atomic_store(flag, 1u, RELEASE, GROUP);
    }
    if (t >= 32) {
        while (atomic_load(flag, RELAXED, GROUP) == 0) __builtin_amdgcn_s_sleep(1);
        y[t] = *value; // FAULT: GlobalRace
    }
}

KERNEL correct(u32 *flag, const float *x, float *value, float *y) {
    u32 t = rf_thread();
    if (t == 0) {
        *value = x[0];
        atomic_store(flag, 1u, RELEASE, GROUP);
    }
    if (t >= 32) {
        while (atomic_load(flag, ACQUIRE, GROUP) == 0) __builtin_amdgcn_s_sleep(1);
        y[t] = *value;
    }
}
