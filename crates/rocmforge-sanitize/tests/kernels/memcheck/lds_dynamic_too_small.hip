// The launch gives two bytes of LDS for each thread; the kernel takes four.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# lds = 128
//# args = ["u32[64] iota", "u32[64]"]
#include "faulty.h"

extern "C" __attribute__((shared)) u32 words[];

KERNEL faulty(const u32 *x, u32 *y) {
    u32 t = rf_thread();
    words[t] = x[t]; // FAULT: LdsOutOfBounds
    rf_barrier();
    y[t] = words[t / 2];
}

KERNEL correct(const u32 *x, u32 *y) {
    u32 t = rf_thread();
    u16 *halves = (u16 *)words;
    halves[t] = (u16)x[t];
    rf_barrier();
    y[t] = halves[63 - t];
}
