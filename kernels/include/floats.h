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
