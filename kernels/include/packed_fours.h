// Packed weights as four values at a time in f32: what quant.h gives of the same weights in ggml's blocks, bit for bit.
//
// A type is a struct with four(w, blocks, i, f): the weights 4 f .. 4 f + 3 (f < 8) of block i of a packed matrix (planes.h, planes_bits.h,
// planes_table.h) of `blocks`.
#pragma once
#include "planes_bits.h"
#include "planes_table.h"

// Word t of part i of an array of parts of `words` words, `skip` bytes into the matrix.
RF_DEVICE u32 rf_word_of(const u8 *w, u64 skip, u64 words, u32 i, u32 t) { return ((const u32 *)(w + skip))[words * i + t]; }
// Nibbles of four weights, and the four fifth bits of them.
RF_DEVICE u32 rf_packed_nibbles(const u8 *w, u32 i, u32 f) { return rf_nibbles(rf_word_of(w, 0, 4, i, f % 4), f / 4); }
RF_DEVICE u32 rf_packed_fifths(const u8 *w, u64 skip, u32 i, u32 f) { return (rf_part<u32>(w, skip, i) >> f & 0x01010101) << 4; }

struct FoursQ4_0 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        float d = rf_half(rf_part<u16>(w, 16 * blocks, i));
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f)), d, -8.0f * d);
    }
};
struct FoursQ4_1 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        u32 scales = rf_part<u32>(w, 16 * blocks, i);
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f)), rf_half((u16)scales), rf_half((u16)(scales >> 16)));
    }
};
struct FoursQ5_0 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        float d = rf_half(rf_part<u16>(w, 20 * blocks, i));
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f) | rf_packed_fifths(w, 16 * blocks, i, f)), d, -16.0f * d);
    }
};
struct FoursQ5_1 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        u32 scales = rf_part<u32>(w, 20 * blocks, i);
        u32 q = rf_packed_nibbles(w, i, f) | rf_packed_fifths(w, 16 * blocks, i, f);
        return rf_scaled(rf_bytes(q), rf_half((u16)scales), rf_half((u16)(scales >> 16)));
    }
};
struct FoursQ8_0 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        float d = rf_half(rf_part<u16>(w, 32 * blocks, i));
        u32 q = rf_word_of(w, f < 4 ? 0 : 16 * blocks, 4, i, f % 4);
        return rf_scaled(rf_bytes(q ^ 0x80808080), d, -128.0f * d);
    }
};
struct FoursQ4K {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        KScales s = KScales::of(rf_part<u4>(w, 16 * blocks, i / 8), i % 8);
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f)), s.d, s.min);
    }
};
struct FoursQ5K {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        KScales s = KScales::of(rf_part<u4>(w, 16 * blocks, i / 8), i % 8);
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f) | rf_packed_fifths(w, 18 * blocks, i, f)), s.d, s.min);
    }
};
struct FoursQ6K {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        u32 scales = rf_part<u16>(w, 24 * blocks, i);
        float d = rf_half(rf_part<u16>(w, 26 * blocks, i / 8)) * (float)(signed char)(scales >> f / 4 * 8);
        u32 high = rf_word_of(w, 16 * blocks, 2, i, f / 4) >> f % 4 * 2 & 0x03030303;
        return rf_scaled(rf_bytes(rf_packed_nibbles(w, i, f) | high << 4), d, -32.0f * d);
    }
};
struct FoursQ2K {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        u32 dm = rf_part<u32>(w, 10 * blocks, i / 8), own = rf_part<u16>(w, 8 * blocks, i) >> f / 4 * 8;
        u32 q = rf_word_of(w, 0, 2, i, f / 4) >> f % 4 * 2 & 0x03030303;
        return rf_scaled(rf_bytes(q), rf_half((u16)dm) * (float)(own & 15), -rf_half((u16)(dm >> 16)) * (float)(own >> 4 & 15));
    }
};
struct FoursQ3K {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        float d = rf_half(rf_part<u16>(w, 13 * blocks + blocks / 2, i / 8));
        d *= Q3Scales::of(rf_part<Q3Scales>(w, 12 * blocks, i / 8), i % 8, f / 4);
        u32 q = rf_word_of(w, 0, 2, i, f / 4) >> f % 4 * 2 & 0x03030303;
        q |= (rf_part<u32>(w, 8 * blocks, i) >> f & 0x01010101) << 2;
        return rf_scaled(rf_bytes(q), d, -4.0f * d);
    }
};
struct FoursIq4Nl {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        return rf_entries(rf_packed_nibbles(w, i, f), RF_IQ4) * rf_half(rf_part<u16>(w, 16 * blocks, i));
    }
};
struct FoursIq4Xs {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        return rf_entries(rf_packed_nibbles(w, i, f), RF_IQ4) * rf_iq4_xs_scale(rf_part<u2>(w, 16 * blocks, i / 8), i % 8);
    }
};
struct FoursMxfp4 {
    RF_DEVICE f4 four(const u8 *w, u64 blocks, u32 i, u32 f) {
        return rf_entries(rf_packed_nibbles(w, i, f), RF_E2M1) * rf_mxfp4_scale(rf_part<u8>(w, 16 * blocks, i));
    }
};
