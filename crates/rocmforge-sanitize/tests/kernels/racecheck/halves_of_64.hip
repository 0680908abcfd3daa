// The two halves of a wave of 64 lanes store different values to one place, and each adds to a place without atomics. No two lanes of one half do.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64] iota", "u32[96] zeros"]
#include "faulty.h"

#define WIDE_KERNEL extern "C" __attribute__((global, target("wavefrontsize64"), amdgpu_flat_work_group_size(1, 64))) void
SHARED u32 bins[32];

// `__syncthreads()`; functions that are inlined are compiled for waves of 32 lanes.
#define BARRIER                                            \
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); \
    __builtin_amdgcn_s_barrier();                          \
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup")

WIDE_KERNEL faulty(const u32 *x, u32 *y) {
    u32 t = __builtin_amdgcn_workitem_id_x();
    y[t & 31] = t; // FAULT: GlobalRace
    if (t < 32) bins[t] = 0;
    BARRIER;
    bins[x[t] % 32] += 1; // FAULT: LdsRace
    BARRIER;
    if (t < 32) y[32 + t] = bins[t];
    if (t % 32 == 5) y[64] = t; // FAULT: GlobalRace
}

WIDE_KERNEL correct(const u32 *x, u32 *y) {
    u32 t = __builtin_amdgcn_workitem_id_x();
    y[t & 31] = t & 31;
    if (t < 32) bins[t] = 0;
    BARRIER;
    atomic_add(&bins[x[t] % 32], 1u, RELAXED, GROUP);
    BARRIER;
    if (t < 32) y[32 + t] = bins[t];
    // One half after the other.
    for (u32 half = 0; half < 2; half++) {
        if (t / 32 == half) y[64 + t % 32] = t;
        BARRIER;
    }
}
