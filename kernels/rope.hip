// Rotary position embedding: pairs of each head's vector are turned by an angle that depends on the token's position. y may be x.
// Su et al., "RoFormer", 2021.
//
// x[tokens, heads, head_dim], tables cos and sin [positions, rotary_dim / 2]. Token t uses table row start + t % seq, so that a
// batch of sequences shares one table. Elements from rotary_dim on are copied. Half-split (GPT-NeoX, Hugging Face) pairs i with
// i + rotary_dim / 2; interleaved (LLaMA as Meta and GGUF lay it out) pairs 2i with 2i + 1. rope_at_* read each token's position
// from memory; one that is not in the tables is a fault and gives NaN. rope_sections has four positions for each token, [4, tokens],
// and turns pair i (half-split) by that of axes[i], which is below 4.
#include "include/fault.h"
#include "include/turn.h"

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

RF_KERNEL(RF_ROW_BLOCK)
rope_sections(const float *x, const float *cosine, const float *sine, const u32 *positions, const u32 *axes, float *y, u32 tokens, u32 heads,
              u32 head_dim, u32 rotary_dim, u32 table_rows, u64 *fault, u32 tag) {
    u32 row = Team32::row();
    u32 token = row / heads;
    if (token >= tokens) return;
    float *out = y + (u64)row * head_dim;
    u32 own[4];
    bool inside = true;
    for (u32 axis = 0; axis < 4; axis++) {
        u64 at = (u64)axis * tokens + token;
        own[axis] = positions[at];
        if (own[axis] < table_rows) continue;
        inside = false;
        if (Team32::lane() == 0) rf_fault(fault, tag, (u32)at, own[axis]);
    }
    if (!inside) {
        for (u32 i = Team32::lane(); i < head_dim; i += 32) out[i] = __builtin_nanf("");
        return;
    }
    // By choices: an array that is indexed would lie in memory.
    auto of = [=](u32 i) {
        u32 axis = axes[i] & 3;
        u32 time_or_height = axis == 0 ? own[0] : own[1], width_or_other = axis == 2 ? own[2] : own[3];
        return (u64)(axis < 2 ? time_or_height : width_or_other) * (rotary_dim / 2);
    };
    turn_each<false>(x + (u64)row * head_dim, cosine, sine, head_dim, rotary_dim, of, [=](u32 i, float v) { out[i] = v; });
}
