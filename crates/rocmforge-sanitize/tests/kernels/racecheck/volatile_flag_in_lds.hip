// A volatile flag in LDS between fences, as CUDA programs have it. Without the fence before the flag the value may come after it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[32]"]
#include "faulty.h"

SHARED u32 values[32];
SHARED volatile u32 flag;

RF_DEVICE void group_fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }

KERNEL faulty(u32 *y) {
    u32 t = rf_thread();
    if (t == 0) flag = 0;
    rf_barrier();
    if (t < 32) {
        values[t] = t + 1; // FAULT: LdsRace
        if (t == 0) flag = 1;
    } else {
        while (flag == 0) __builtin_amdgcn_s_sleep(1);
        group_fence();
        y[t - 32] = values[t - 32]; // FAULT: LdsRace
    }
}

KERNEL correct(u32 *y) {
    u32 t = rf_thread();
    if (t == 0) flag = 0;
    rf_barrier();
    if (t < 32) {
        values[t] = t + 1;
        group_fence();
        if (t == 0) flag = 1;
    } else {
        while (flag == 0) __builtin_amdgcn_s_sleep(1);
        group_fence();
        y[t - 32] = values[t - 32];
    }
}
