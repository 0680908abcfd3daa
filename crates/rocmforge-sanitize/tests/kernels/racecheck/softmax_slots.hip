// The softmax of one row by two waves. The slots through which the waves exchange their maxima are used again for the sums,
// while the other wave may still read the maxima.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

RF_DEVICE float wave_max(float v) {
    v = rf_max(v, rf_shuffle_xor<16>(v));
    v = rf_max(v, rf_shuffle_xor<8>(v));
    v = rf_max(v, rf_shuffle_xor<4>(v));
    v = rf_max(v, rf_shuffle_xor<2>(v));
    return rf_max(v, rf_shuffle_xor<1>(v));
}

RF_DEVICE float wave_sum(float v) {
    v += rf_shuffle_xor<16>(v);
    v += rf_shuffle_xor<8>(v);
    v += rf_shuffle_xor<4>(v);
    v += rf_shuffle_xor<2>(v);
    return v + rf_shuffle_xor<1>(v);
}

KERNEL faulty(const float *x, float *y) {
    SHARED float slot[2];
    u32 t = rf_thread(), wave = t / 32;
    float m = wave_max(x[t]);
    if (t % 32 == 0) slot[wave] = m;
    rf_barrier();
    m = rf_max(slot[0], slot[1]); // FAULT: LdsRace
    float e = rf_exp2(x[t] - m);
    float sum = wave_sum(e);
    if (t % 32 == 0) slot[wave] = sum; // FAULT: LdsRace
    rf_barrier();
    y[t] = e / (slot[0] + slot[1]);
}

KERNEL correct(const float *x, float *y) {
    SHARED float slot[2];
    u32 t = rf_thread(), wave = t / 32;
    float m = wave_max(x[t]);
    if (t % 32 == 0) slot[wave] = m;
    rf_barrier();
    m = rf_max(slot[0], slot[1]);
    float e = rf_exp2(x[t] - m);
    float sum = wave_sum(e);
    rf_barrier();
    if (t % 32 == 0) slot[wave] = sum;
    rf_barrier();
    y[t] = e / (slot[0] + slot[1]);
}
