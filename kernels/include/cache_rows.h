// Rows of f32 into memory of another type: a float type of floats.h, or blocks of q8_0. For caches of keys and values, and set_rows.
//
// q8_0 is ggml's: 34 bytes for 32 neighbours of a row, d in f16 and 32 signed bytes; a value is d times its byte. Rounded as ggml's
// quantize_row_q8_0 does: d = the largest magnitude / 127, a byte is value * (1 / d) to the nearest, ties away from zero. Blocks lie at any multiple
// of 2 bytes.
#pragma once
#include "floats.h"
#include "quant.h"
#include "quantize.h"
#include "team.h"

struct ToQ8_0 {};

// Elements that share a block of the memory, and its bytes.
template <class To> struct Stored {
    static constexpr u32 block = 1, bytes = sizeof(typename To::Type);
};
template <> struct Stored<ToQ8_0> {
    static constexpr u32 block = Q8_0::block, bytes = Q8_0::bytes;
};
// Bytes of so many elements, whole blocks.
template <class To> RF_DEVICE u64 rf_stored_bytes(u64 elements) { return elements / Stored<To>::block * Stored<To>::bytes; }

// A lane's four values, the `part`-th four of the block at p. Eight lanes with neighbouring fours have the same block; all 32 call it together, those
// without a block with in = false. A block with an infinite value, a NaN, or a largest magnitude over 127 * 65504 reads as NaN.
RF_DEVICE void rf_put_q8_0(u8 *p, u32 part, f4 v, bool in) {
    u32 top = rf_larger_of(rf_larger_of(rf_magnitude(v.x), rf_magnitude(v.y)), rf_larger_of(rf_magnitude(v.z), rf_magnitude(v.w)));
    top = rf_larger<1>(top);
    top = rf_larger<2>(top);
    top = rf_larger<4>(top);
    float d = __builtin_bit_cast(float, top) / 127.0f;
    // The inverse of a number below the normal ones might be infinite; d is 0 in f16 long before.
    bool scaled = d >= 0x1p-126f && d < RF_INF;
    float inverse = scaled ? 1.0f / d : 0.0f;
    u32 word = 0;
#pragma unroll
    for (u32 e = 0; e < 4; ++e) {
        float q = scaled ? __builtin_roundf(v[e] * inverse) : 0.0f;
        word |= ((u32)(i32)q & 255) << 8 * e;
    }
    if (!in) return;
    if (part == 0) *(_Float16 *)p = (_Float16)d;
    *(u32_at2 *)(p + 2 + 4 * part) = word;
}

// The columns of a row that tile t has, 32 lanes to the row; `in` and `out` are where the row begins. All 32 lanes call it together.
template <class To> RF_DEVICE void rf_put_row(const float *in, u8 *out, const RowTile &t) {
    if constexpr (Stored<To>::block == 1) {
        for (u32 c = t.begin; c < t.end; c += 128) {
            u32 count = rf_left4(c, t.end);
            rf_store4_as<To>((typename To::Type *)out + c, rf_load4(in + c, count), count);
        }
    } else {
        u32 own = rf_thread() % 32 * 4;
        for (u32 first = t.begin - own; first < t.end; first += 128) {
            u32 c = first + own;
            bool there = c < t.end; // a row is whole blocks
            rf_put_q8_0(out + rf_stored_bytes<To>(c), c / 4 % 8, there ? rf_get4(in + c) : rf_splat(0.0f), there);
        }
    }
}
