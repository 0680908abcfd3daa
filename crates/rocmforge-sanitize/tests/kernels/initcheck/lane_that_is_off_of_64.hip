// Shuffles in waves of 64 lanes: those of the second half are off, or some of both.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[64] iota", "u32[128] zeros", 40]
#include "faulty.h"

#define WIDE_KERNEL extern "C" __attribute__((global, target("wavefrontsize64"), amdgpu_flat_work_group_size(1, 64))) void

WIDE_KERNEL faulty(const u32 *x, u32 *y, u32 n) {
    u32 t = __builtin_amdgcn_workitem_id_x(), value = x[t];
    if (t < n) {
        u32 other = __builtin_amdgcn_ds_bpermute(4 * (t ^ 16), value); // FAULT: InactiveLane
        y[t] = other;
        if (t % 2 == 0) y[64 + t] = __builtin_amdgcn_ds_bpermute(4 * (t + 1), value); // FAULT: InactiveLane
    }
}

WIDE_KERNEL correct(const u32 *x, u32 *y, u32 n) {
    u32 t = __builtin_amdgcn_workitem_id_x(), value = x[t];
    if (t < n) {
        u32 other = __builtin_amdgcn_ds_bpermute(4 * (t ^ 16), value);
        y[t] = (t ^ 16) < n ? other : 0;
        if (t % 2 == 0) y[64 + t] = __builtin_amdgcn_ds_bpermute(4 * (t ^ 4), value);
    }
}
