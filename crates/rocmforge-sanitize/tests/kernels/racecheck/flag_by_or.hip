// One wave waits for a flag in LDS by an atomic operation that changes nothing, and for a counter whose first look stands before the loop. What is
// stored behind the flag is not handed over.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[32]"]
#include "faulty.h"

SHARED u32 values[32];
SHARED u32 flag;
SHARED u32 count;

KERNEL faulty(u32 *y) {
    u32 t = rf_thread();
    if (t < 32) values[t] = 0;
    if (t == 0) flag = 0;
    rf_barrier();
    if (t < 32) {
        if (t == 0) atomic_exchange(&flag, 1u, RELEASE, GROUP);
        values[t] = t + 1; // FAULT: LdsRace
    } else {
        while (__hip_atomic_fetch_or(&flag, 0u, ACQUIRE, GROUP) == 0) __builtin_amdgcn_s_sleep(1);
        y[t - 32] = values[t - 32]; // FAULT: LdsRace
    }
}

KERNEL correct(u32 *y) {
    u32 t = rf_thread();
    if (t == 0) flag = count = 0;
    rf_barrier();
    if (t < 32) {
        values[t] = t + 1;
        if (t == 0) {
            atomic_exchange(&flag, 1u, RELEASE, GROUP);
            atomic_add(&count, 1u, RELEASE, GROUP);
        }
    } else {
        while (__hip_atomic_fetch_or(&flag, 0u, ACQUIRE, GROUP) == 0) __builtin_amdgcn_s_sleep(1);
        y[t - 32] = values[t - 32];
        while (atomic_add(&count, 0u, ACQUIRE, GROUP) < 1) __builtin_amdgcn_s_sleep(1);
        while (atomic_load(&count, ACQUIRE, GROUP) < 1) __builtin_amdgcn_s_sleep(1);
    }
}
