// Eight elements of a cache of 16 bits or in q8_0, as a lane holds them until they are used: load(p, i) gives eight number i, load_of(p, part) number `part`
// of a block of EACH eights in BYTES bytes, floats(raw, x) their values in f32, chunk(raw) the values that a matrix unit takes, of type Type. Of all zero
// bits they are zeros; absent() are NaN. In f16 and bf16 a load is 16 bytes, aligned; in q8_0 it is 10, at multiples of 2.
#pragma once
#include "quant.h"

struct HalfEights {
    typedef _Float16 Type;
    typedef _Float16 Raw __attribute__((ext_vector_type(8)));
    static constexpr u32 EACH = 1, BYTES = 16;
    RF_DEVICE Raw load(const u8 *p, u64 i) { return __builtin_bit_cast(Raw, ((const u4 *)p)[i]); }
    RF_DEVICE Raw load_of(const u8 *p, u32) { return __builtin_bit_cast(Raw, *(const u4 *)p); }
    RF_DEVICE Raw absent() { return __builtin_bit_cast(Raw, u4{0x7e007e00, 0x7e007e00, 0x7e007e00, 0x7e007e00}); }
    RF_DEVICE void floats(const Raw &raw, float (&x)[8]) {
#pragma unroll
        for (u32 e = 0; e < 8; ++e) x[e] = (float)raw[e];
    }
    RF_DEVICE u4 chunk(const Raw &raw) { return __builtin_bit_cast(u4, raw); }
};
struct Bf16Eights {
    typedef __bf16 Type;
    typedef u4 Raw;
    static constexpr u32 EACH = 1, BYTES = 16;
    RF_DEVICE Raw load(const u8 *p, u64 i) { return ((const u4 *)p)[i]; }
    RF_DEVICE Raw load_of(const u8 *p, u32) { return *(const u4 *)p; }
    RF_DEVICE Raw absent() { return u4{0x7fc07fc0, 0x7fc07fc0, 0x7fc07fc0, 0x7fc07fc0}; }
    RF_DEVICE void floats(const Raw &raw, float (&x)[8]) {
#pragma unroll
        for (u32 e = 0; e < 8; ++e) x[e] = __builtin_bit_cast(float, e % 2 ? raw[e / 2] & 0xffff0000 : raw[e / 2] << 16);
    }
    RF_DEVICE u4 chunk(const Raw &raw) { return raw; }
};
struct Q8_0Eights {
    typedef _Float16 Type;
    struct Raw {
        u32 low, high;
        u16 d;
    };
    static constexpr u32 EACH = 4, BYTES = Q8_0::bytes;
    RF_DEVICE Raw load(const u8 *p, u64 i) {
        const u8 *block = p + i / EACH * BYTES, *own = block + 2 + 8 * (i % EACH);
        return {rf_word_at2(own), rf_word_at2(own + 4), *(const u16 *)block};
    }
    RF_DEVICE Raw load_of(const u8 *p, u32 part) { return load(p, part); }
    RF_DEVICE Raw absent() { return {0, 0, 0x7e00}; }
    RF_DEVICE void floats(const Raw &raw, float (&x)[8]) {
        float d = rf_half(raw.d);
        f4 low = rf_scaled(rf_bytes(raw.low ^ 0x80808080), d, -128.0f * d), high = rf_scaled(rf_bytes(raw.high ^ 0x80808080), d, -128.0f * d);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) x[e] = low[e], x[e + 4] = high[e];
    }
    RF_DEVICE u4 chunk(const Raw &raw) {
        typedef _Float16 Halves __attribute__((ext_vector_type(8)));
        float x[8];
        floats(raw, x);
        Halves halves;
#pragma unroll
        for (u32 e = 0; e < 8; ++e) halves[e] = (_Float16)x[e];
        return __builtin_bit_cast(u4, halves);
    }
};
