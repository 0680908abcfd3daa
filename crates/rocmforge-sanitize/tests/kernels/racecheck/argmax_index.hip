// The waves exchange a value and an index. The barrier stands between the two stores.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "u32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, u32 *y) {
    SHARED float value[2];
    SHARED u32 index[2];
    u32 t = rf_thread(), wave = t / 32;
    if (t % 32 == 31) value[wave] = x[t];
    rf_barrier();
    if (t % 32 == 31) index[wave] = t; // FAULT: LdsRace
    u32 best = value[0] > value[1] ? 0 : 1;
    y[t] = *(volatile u32 *)&index[best]; // FAULT: LdsRace ALSO: UninitialisedLds
}

KERNEL correct(const float *x, u32 *y) {
    SHARED float value[2];
    SHARED u32 index[2];
    u32 t = rf_thread(), wave = t / 32;
    if (t % 32 == 31) value[wave] = x[t];
    if (t % 32 == 31) index[wave] = t;
    rf_barrier();
    u32 best = value[0] > value[1] ? 0 : 1;
    y[t] = *(volatile u32 *)&index[best];
}
