// One wave hands a value to another through a flag in LDS. Without the flag nothing orders them.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] ones", "f32[64]"]
#include "faulty.h"

SHARED u32 flag;
SHARED float value;

KERNEL faulty(const float *x, float *y) {
    u32 t = rf_thread();
    if (t == 0) {
        atomic_store(&flag, 0u, RELAXED, GROUP);
        value = 0.0f;
    }
    rf_barrier();
    if (t == 0) {
        *(volatile float *)&value = x[0]; // FAULT: LdsRace
        atomic_store(&flag, 1u, RELEASE, GROUP);
    }
    if (t >= 32) y[t] = *(volatile float *)&value; // FAULT: LdsRace
}

KERNEL correct(const float *x, float *y) {
    u32 t = rf_thread();
    if (t == 0) {
        atomic_store(&flag, 0u, RELAXED, GROUP);
        value = 0.0f;
    }
    rf_barrier();
    if (t == 0) {
        value = x[0];
        atomic_store(&flag, 1u, RELEASE, GROUP);
    }
    if (t >= 32) {
        while (atomic_load(&flag, ACQUIRE, GROUP) == 0) __builtin_amdgcn_s_sleep(1);
        y[t] = value;
    }
}
