// Compilers add to a float or a double atomically with a loop around a compare-and-swap, whose first load is a plain one. That is no
// race; an addition without atomics is.
//
//# [buffers]
//# sums = "f64[2] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 64
//# args = ["sums", "f64[64] ones", "f64[128]"]
#include "faulty.h"

SHARED double local;

KERNEL faulty(double *sums, const double *x, double *y) {
    u32 t = rf_thread();
    if (t == 0) local = 0.0;
    rf_barrier();
    atomic_add(&local, x[t], RELAXED, GROUP);
    atomic_add((float *)&sums[1], (float)x[t], RELAXED, DEVICE);
    rf_barrier();
    if (t == 0) sums[0] += local; // FAULT: GlobalRace
    y[rf_block_x() * 64 + t] = local;
}

KERNEL correct(double *sums, const double *x, double *y) {
    u32 t = rf_thread();
    if (t == 0) local = 0.0;
    rf_barrier();
    atomic_add(&local, x[t], RELAXED, GROUP);
    atomic_add((float *)&sums[1], (float)x[t], RELAXED, DEVICE);
    rf_barrier();
    if (t == 0) atomic_add(&sums[0], local, RELAXED, DEVICE);
    y[rf_block_x() * 64 + t] = local;
}
