// Shuffles read lanes that take no part: a branch has turned them off, or the workgroup has no such thread. A card gives 0, and HIP promises nothing. Who
// drops such a value, or shuffles before the branch, is right.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] iota", "u32[128] zeros", 20]
//#
//# [[launch]]
//# kernel = "faulty_sum"
//# block = 24
//# args = ["f32[32] iota", "f32[32]"]
#include "faulty.h"

// `__shfl` of a number and of one of 64 bits.
RF_DEVICE u32 shuffle(u32 value, u32 lane) { return __builtin_amdgcn_ds_bpermute(4 * lane, value); }
RF_DEVICE u64 shuffle(u64 value, u32 lane) {
    return (u64)shuffle((u32)(value >> 32), lane) << 32 | shuffle((u32)value, lane);
}

KERNEL faulty(const u32 *x, u32 *y, u32 n) {
    SHARED u32 slots[32];
    u32 t = rf_thread(), value = x[t];
    if (t < n) {
        y[t] = shuffle(value, t ^ 16); // FAULT: InactiveLane
        u64 pair = shuffle((u64)value << 20, (t + 1) % 32); // FAULT: InactiveLane
        y[32 + t] = (u32)(pair >> 3);
        if (shuffle(value, 31) > 5) y[64 + t] = 1; // FAULT: InactiveLane
        slots[t] = shuffle(value, 31 - t); // FAULT: InactiveLane
    }
    rf_barrier();
    if (t < n) y[96 + t] = slots[t];
}

KERNEL faulty_sum(const float *x, float *y) {
    float sum = x[rf_thread()];
    for (u32 step = 16; step; step /= 2) {
        u32 other = shuffle(__builtin_bit_cast(u32, sum), rf_thread() ^ step); // FAULT: InactiveLane
        sum += __builtin_bit_cast(float, other);
    }
    y[rf_thread()] = sum + rf_shuffle_xor<8>(x[rf_thread()]); // FAULT: InactiveLane
}

KERNEL correct(const u32 *x, u32 *y, u32 n) {
    SHARED u32 slots[32];
    u32 t = rf_thread(), value = x[t];
    u32 early = shuffle(value, t ^ 16);
    if (t < n) {
        y[t] = early;
        u64 pair = shuffle((u64)value << 20, (t + 1) % 32);
        y[32 + t] = t + 1 < n ? (u32)(pair >> 3) : 0;
        if (shuffle(value, n - 1) > 5) y[64 + t] = 1;
        u32 mirrored = shuffle(value, 31 - t);
        if (31 - t < n) slots[t] = mirrored;
        else slots[t] = 0;
        if (31 - t < n && mirrored > 3) y[64 + t] = 2;
    }
    rf_barrier();
    if (t < n) y[96 + t] = slots[t];
}

KERNEL correct_sum(const float *x, float *y) {
    u32 t = rf_thread();
    float sum = x[t];
    for (u32 step = 16; step; step /= 2) {
        u32 other = shuffle(__builtin_bit_cast(u32, sum), t ^ step);
        sum += (t ^ step) < 24 ? __builtin_bit_cast(float, other) : 0.0f;
    }
    float neighbour = rf_shuffle_xor<8>(x[t]);
    y[t] = sum + (t < 16 ? neighbour : 0.0f);
}
