// Kernels without a fault of their own, for the faulty host programs.
#include "faulty.h"

KERNEL fill(float *y, float value, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    if (i < n) y[i] = value;
}

KERNEL copy(const float *x, float *y, u32 n) {
    u32 i = rf_block_x() * 32 + rf_thread();
    if (i < n) y[i] = x[i];
}

KERNEL wait_for(const u32 *flag) {
    while (atomic_load(flag, ACQUIRE, DEVICE) == 0)
        __builtin_amdgcn_s_sleep(1);
}

extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 64))) void at_most_64(float *y) {
    y[rf_thread()] = 1.0f;
}
