// A gather that believes its indices: they are far outside the table.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32] iota", "f32[32]", 0x100000, 32]
#include "faulty.h"

KERNEL faulty(const float *table, float *y, u32 stride, u32 n) {
    u32 i = rf_thread();
    y[i] = table[(u64)i * stride] + (float)n; // FAULT: OutOfBounds
}

KERNEL correct(const float *table, float *y, u32 stride, u32 n) {
    u32 i = rf_thread();
    u64 at = (u64)i * stride;
    y[i] = (at < n ? table[at] : 0.0f) + (float)n;
}
