// One element more is summed than was written. The lanes of a wave add up by shuffles, so that another lane stores what it has given.
//
//# [buffers]
//# x = { dtype = "f32", shape = 32, fill = "iota", written = ["0..31"] }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["x", "f32[1]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    float sum = x[rf_thread()]; // FAULT: Uninitialised
    sum += rf_shuffle_xor<16>(sum);
    sum += rf_shuffle_xor<8>(sum);
    sum += rf_shuffle_xor<4>(sum);
    sum += rf_shuffle_xor<2>(sum);
    sum += rf_shuffle_xor<1>(sum);
    if (rf_thread() == 0) *y = sum;
}

KERNEL correct(const float *x, float *y) {
    float sum = rf_thread() < 31 ? x[rf_thread()] : 0.0f;
    sum += rf_shuffle_xor<16>(sum);
    sum += rf_shuffle_xor<8>(sum);
    sum += rf_shuffle_xor<4>(sum);
    sum += rf_shuffle_xor<2>(sum);
    sum += rf_shuffle_xor<1>(sum);
    if (rf_thread() == 0) *y = sum;
}
