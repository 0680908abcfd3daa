// The second wave spins on a flag that the first sets behind a barrier, which the second never reaches.
//
//# budget = 20000
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64]"]
#include "faulty.h"

KERNEL faulty(u32 *y) {
    SHARED u32 ready;
    u32 t = rf_thread(), wave = __builtin_amdgcn_readfirstlane(t / 32);
    if (t == 0) atomic_store(&ready, 0u, RELAXED, GROUP);
    rf_barrier();
    if (wave == 1)
        while (atomic_load(&ready, ACQUIRE, GROUP) == 0) // FAULT: EndlessKernel
            __builtin_amdgcn_s_sleep(1); // FAULT: EndlessKernel
    rf_barrier();
    if (t == 0) atomic_store(&ready, 1u, RELEASE, GROUP);
    y[t] = t;
}

KERNEL correct(u32 *y) {
    SHARED u32 ready;
    u32 t = rf_thread(), wave = __builtin_amdgcn_readfirstlane(t / 32);
    if (t == 0) atomic_store(&ready, 0u, RELAXED, GROUP);
    rf_barrier();
    if (t == 0) atomic_store(&ready, 1u, RELEASE, GROUP);
    rf_barrier();
    if (wave == 1)
        while (atomic_load(&ready, ACQUIRE, GROUP) == 0)
            __builtin_amdgcn_s_sleep(1);
    y[t] = t;
}
