// A barrier that only the first wave reaches.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float first;
    u32 t = rf_thread();
    float v = x[t];
    if (t / 32 == 0) {
        if (t == 0) first = v;
        rf_barrier(); // FAULT: BarrierDivergence
        v += first;
    }
    y[t] = v; // ALSO: BarrierDivergence
} // ALSO: BarrierDivergence

KERNEL correct(const float *x, float *y) {
    SHARED float first;
    u32 t = rf_thread();
    float v = x[t];
    if (t == 0) first = v;
    rf_barrier();
    if (t / 32 == 0) v += first;
    y[t] = v;
}
