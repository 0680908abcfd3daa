// Three groups hand a value each to a fourth by flags of one or two bytes, which lie beside each other. Without a fence before the flag the value
// may come after it.
//
//# [buffers]
//# data = "u32[4]"
//# flags = "u8[4] zeros"
//# halves = "u16[4] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 3
//# block = 32
//# args = ["data", "flags", "halves", "u32[4]"]
#include "faulty.h"

KERNEL faulty(u32 *data, u8 *flags, u16 *halves, u32 *y) {
    u32 t = rf_thread(), b = rf_block_x();
    if (t == 0) {
        data[b] = b + 1; // FAULT: GlobalRace
        atomic_store(&flags[b], (u8)1, RELAXED, DEVICE);
        atomic_store(&halves[b], (u16)1, RELAXED, DEVICE);
    }
    if (b == 2 && t < 3) {
        while (atomic_load(&flags[t], RELAXED, DEVICE) == 0) __builtin_amdgcn_s_sleep(1);
        device_fence();
        y[t] = data[t]; // FAULT: GlobalRace
    }
}

KERNEL correct(u32 *data, u8 *flags, u16 *halves, u32 *y) {
    u32 t = rf_thread(), b = rf_block_x();
    if (t == 0) {
        data[b] = b + 1;
        device_fence();
        atomic_store(&flags[b], (u8)1, RELAXED, DEVICE);
        atomic_store(&halves[b], (u16)1, RELEASE, DEVICE);
    }
    if (b == 2 && t < 3) {
        while (atomic_load(&flags[t], RELAXED, DEVICE) == 0) __builtin_amdgcn_s_sleep(1);
        device_fence();
        y[t] = data[t];
        while (atomic_load(&halves[t], ACQUIRE, DEVICE) == 0) __builtin_amdgcn_s_sleep(1);
        y[t] += data[t];
    }
}
