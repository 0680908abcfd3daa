// Slopes of ALiBi. Press et al., "Train Short, Test Long: Attention with Linear Biases Enables Input Length Extrapolation", 2022.
#pragma once
#include "rf.h"

// What the mask of a head is multiplied with: 2^(-max_bias (head + 1) / power) for heads below `power`, the largest power of two in their
// number, and the ones between those for the others. 1 where max_bias is 0.
RF_DEVICE float rf_slope(float max_bias, u32 power, u32 head) {
    if (max_bias <= 0.0f) return 1.0f;
    float p = (float)power;
    float exponent = head < power ? (float)(head + 1) / p : (float)(2 * (head - power) + 1) / (2.0f * p);
    return rf_exp2(-max_bias * exponent);
}
