// A check of the kernel's own: it stops the whole device.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] iota", "u32[32]", 31]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y, u32 n) {
    u32 v = x[rf_thread()];
    if (v >= n) __builtin_trap(); // FAULT: KernelAbort
    y[rf_thread()] = v;
}

KERNEL correct(const u32 *x, u32 *y, u32 n) {
    u32 v = x[rf_thread()];
    if (v >= n) v = n - 1;
    y[rf_thread()] = v;
}
