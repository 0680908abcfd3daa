// f32 to every float type: rounded to the nearest, ties to even; too large becomes infinite. The way back is in quant.h.
#pragma once
#include "rf.h"

struct ToF32 {
    typedef float Type;
    RF_DEVICE float of(float x) { return x; }
};
struct ToF16 {
    typedef _Float16 Type;
    RF_DEVICE _Float16 of(float x) { return (_Float16)x; }
};
// The upper half of the bits. A NaN stays one, whatever its bits.
struct ToBf16 {
    typedef unsigned short Type;
    RF_DEVICE unsigned short of(float x) {
        u32 bits = __builtin_bit_cast(u32, x);
        if (x != x) return (unsigned short)(bits >> 16 | 64);
        return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

// Writes the first `count` (0 to 4) of four floats in another type: whole fours in one access where the address allows it.
template <class To> RF_DEVICE void rf_store4_as(typename To::Type *p, f4 v, u32 count) {
    if (count < 4) {
#pragma unroll
        for (u32 e = 0; e < 3; ++e)
            if (e < count) p[e] = To::of(v[e]);
    } else if constexpr (sizeof(typename To::Type) == 4) {
        rf_put4(p, v);
    } else {
        auto bits = [](typename To::Type x) { return (u32)__builtin_bit_cast(unsigned short, x); };
        rf_put8(p, u2{bits(To::of(v.x)) | bits(To::of(v.y)) << 16, bits(To::of(v.z)) | bits(To::of(v.w)) << 16});
    }
}
