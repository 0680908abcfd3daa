// Rotary position embedding: pairs of each head's vector are turned by an angle that depends on the token's position. y may be x.
// Su et al., "RoFormer", 2021.
//
// x[tokens, heads, head_dim], tables cos and sin [positions, rotary_dim / 2]. Token t uses table row start + t % seq, so that a
// batch of sequences shares one table. Elements from rotary_dim on are copied. Half-split (GPT-NeoX, Hugging Face) pairs i with
// i + rotary_dim / 2; interleaved (LLaMA as Meta and GGUF lay it out) pairs 2i with 2i + 1. rope_at_* read each token's position
// from memory; one that is not in the tables is a fault and gives NaN.
#include "include/fault.h"
#include "include/team.h"

// Whether two pairs at a time can be read and written; every row of the tables begins as the first, if half of rotary_dim is even.
template <bool INTERLEAVED> RF_DEVICE bool pairs_of_two(const float *in, const float *out, const float *cosine, const float *sine) {
    if (!rf_wide2(cosine) || !rf_wide2(sine)) return false;
    return INTERLEAVED ? rf_wide(in, 0) && rf_wide(out, 0) : rf_wide2(in) && rf_wide2(out);
}

// One head by row `table` of the tables. Two pairs to a lane and step, one where an operand starts at an odd element.
template <bool INTERLEAVED>
RF_DEVICE void turn(const float *in, const float *cosine, const float *sine, float *out, u32 head_dim, u32 rotary_dim, u64 table) {
    u32 half = rotary_dim / 2;
    if (half % 2 == 0 && pairs_of_two<INTERLEAVED>(in, out, cosine, sine)) {
        for (u32 i = Team32::lane() * 2; i < half; i += 64) {
            // The head first: where it lies is known before its row of the tables.
            if constexpr (INTERLEAVED) {
                f4 v = *(const f4_wide *)(in + 2 * i);
                f2_wide c = *(const f2_wide *)(cosine + table + i), s = *(const f2_wide *)(sine + table + i);
                *(f4_wide *)(out + 2 * i) = f4{rf_fma(v.x, c.x, -(v.y * s.x)), rf_fma(v.x, s.x, v.y * c.x),
                                               rf_fma(v.z, c.y, -(v.w * s.y)), rf_fma(v.z, s.y, v.w * c.y)};
            } else {
                f2_wide a = *(const f2_wide *)(in + i), b = *(const f2_wide *)(in + half + i);
                f2_wide c = *(const f2_wide *)(cosine + table + i), s = *(const f2_wide *)(sine + table + i);
                *(f2_wide *)(out + i) = f2_wide{rf_fma(a.x, c.x, -(b.x * s.x)), rf_fma(a.y, c.y, -(b.y * s.y))};
                *(f2_wide *)(out + half + i) = f2_wide{rf_fma(a.x, s.x, b.x * c.x), rf_fma(a.y, s.y, b.y * c.y)};
            }
        }
        half = 0;
    }
    for (u32 i = Team32::lane(); i < half; i += 32) {
        u32 first = INTERLEAVED ? 2 * i : i;
        u32 second = INTERLEAVED ? 2 * i + 1 : i + half;
        float a = in[first];
        float b = in[second];
        float c = cosine[table + i];
        float s = sine[table + i];
        out[first] = rf_fma(a, c, -(b * s));
        out[second] = rf_fma(a, s, b * c);
    }
    for (u32 i = rotary_dim + Team32::lane(); i < head_dim; i += 32) out[i] = in[i];
}

template <bool INTERLEAVED>
RF_DEVICE void rope(const float *x, const float *cosine, const float *sine, float *y, u32 tokens, u32 seq, u32 heads, u32 head_dim,
                    u32 rotary_dim, u32 start) {
    u32 row = Team32::row();
    u32 token = row / heads;
    if (token >= tokens) return;
    u64 table = (u64)(start + token % seq) * (rotary_dim / 2);
    turn<INTERLEAVED>(x + (u64)row * head_dim, cosine, sine, y + (u64)row * head_dim, head_dim, rotary_dim, table);
}

template <bool INTERLEAVED>
RF_DEVICE void rope_at(const float *x, const float *cosine, const float *sine, const u32 *positions, float *y, u32 tokens, u32 heads,
                       u32 head_dim, u32 rotary_dim, u32 table_rows, u64 *fault, u32 tag) {
    u32 row = Team32::row();
    u32 token = row / heads;
    if (token >= tokens) return;
    u32 position = positions[token];
    float *out = y + (u64)row * head_dim;
    if (position >= table_rows) {
        if (Team32::lane() == 0) rf_fault(fault, tag, token, position);
        for (u32 i = Team32::lane(); i < head_dim; i += 32) out[i] = __builtin_nanf("");
        return;
    }
    turn<INTERLEAVED>(x + (u64)row * head_dim, cosine, sine, out, head_dim, rotary_dim, (u64)position * (rotary_dim / 2));
}

RF_KERNEL(RF_ROW_BLOCK)
rope_half(const float *x, const float *cosine, const float *sine, float *y, u32 tokens, u32 seq, u32 heads, u32 head_dim,
          u32 rotary_dim, u32 start) {
    rope<false>(x, cosine, sine, y, tokens, seq, heads, head_dim, rotary_dim, start);
}
RF_KERNEL(RF_ROW_BLOCK)
rope_interleaved(const float *x, const float *cosine, const float *sine, float *y, u32 tokens, u32 seq, u32 heads, u32 head_dim,
                 u32 rotary_dim, u32 start) {
    rope<true>(x, cosine, sine, y, tokens, seq, heads, head_dim, rotary_dim, start);
}
RF_KERNEL(RF_ROW_BLOCK)
rope_at_half(const float *x, const float *cosine, const float *sine, const u32 *positions, float *y, u32 tokens, u32 heads, u32 head_dim,
             u32 rotary_dim, u32 table_rows, u64 *fault, u32 tag) {
    rope_at<false>(x, cosine, sine, positions, y, tokens, heads, head_dim, rotary_dim, table_rows, fault, tag);
}
RF_KERNEL(RF_ROW_BLOCK)
rope_at_interleaved(const float *x, const float *cosine, const float *sine, const u32 *positions, float *y, u32 tokens, u32 heads,
                    u32 head_dim, u32 rotary_dim, u32 table_rows, u64 *fault, u32 tag) {
    rope_at<true>(x, cosine, sine, positions, y, tokens, heads, head_dim, rotary_dim, table_rows, fault, tag);
}
