// Numbers that may be larger or smaller than f16 holds, brought into its range.
#pragma once
#include "rf.h"

// The power of two that brings the largest of some magnitudes just below 2^15, and its inverse: rounded to f16 they neither overflow nor lose digits
// that matter beside the largest. Numbers that are all below 2^-63 lose digits. NaN and infinity stay what they are.
struct Range16 {
    float up, down;
};
RF_DEVICE Range16 rf_range16(u32 largest_bits) {
    u32 exponent = largest_bits >> 23;
    if (exponent < 64) exponent = 64; // the inverse stays normal, also times a scale
    return {__builtin_bit_cast(float, (268 - exponent) << 23), __builtin_bit_cast(float, (exponent - 14) << 23)};
}
