// Floats of 16 bits with the range of f32: `__hip_bfloat16`, pairs of them, and their functions; and the older `hip_bfloat16`, which has operators only.
#pragma once
#include "half.h"

RF_SMALL_FLOAT(__hip_bfloat16, __bf16)
RF_SMALL_PAIR(__hip_bfloat162, __hip_bfloat16)
RF_SMALL_CONVERSIONS(__hip_bfloat16, bfloat16)
#define RF_BFLOAT16_FUSED(x, y, z) __builtin_fmaf((float)x, (float)y, (float)z)
RF_SMALL_FUNCTIONS(__hip_bfloat16, RF_BFLOAT16_FUSED)

struct hip_bfloat16 {
    unsigned short data;
    enum truncate_t { truncate };
    hip_bfloat16() = default;
    explicit RF_SMALL_MEMBER hip_bfloat16(float x) : data(__builtin_bit_cast(unsigned short, (__bf16)x)) {}
    // The upper half of the float as it is; a NaN stays one.
    RF_SMALL_MEMBER hip_bfloat16(float x, truncate_t)
        : data((unsigned short)(__builtin_bit_cast(unsigned, x) >> 16 | (x != x ? 0x40 : 0))) {}
    RF_SMALL_MEMBER operator float() const { return __builtin_bit_cast(float, (unsigned)data << 16); }
    RF_SMALL_MEMBER hip_bfloat16& operator=(float x) { return *this = hip_bfloat16(x); }
    static RF_SMALL_MEMBER hip_bfloat16 round_to_bfloat16(float x) { return hip_bfloat16(x); }
    static RF_SMALL_MEMBER hip_bfloat16 round_to_bfloat16(float x, truncate_t way) { return hip_bfloat16(x, way); }
#define RF_OLD_OPERATOR(of)                                                                                              \
    friend RF_SMALL_MEMBER hip_bfloat16 operator of(hip_bfloat16 x, hip_bfloat16 y) { return hip_bfloat16((float)x of (float)y); } \
    RF_SMALL_MEMBER hip_bfloat16& operator of##=(hip_bfloat16 y) { return *this = *this of y; }
    RF_OLD_OPERATOR(+)
    RF_OLD_OPERATOR(-)
    RF_OLD_OPERATOR(*)
    RF_OLD_OPERATOR(/)
    friend RF_SMALL_MEMBER hip_bfloat16 operator+(hip_bfloat16 x) { return x; }
    friend RF_SMALL_MEMBER hip_bfloat16 operator-(hip_bfloat16 x) {
        x.data ^= 0x8000;
        return x;
    }
    RF_SMALL_MEMBER hip_bfloat16& operator++() { return *this += hip_bfloat16(1.0f); }
    RF_SMALL_MEMBER hip_bfloat16& operator--() { return *this -= hip_bfloat16(1.0f); }
};
