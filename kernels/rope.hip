// Rotary position embedding: pairs of each head's vector are turned by an angle that depends on the token's position. y may be x.
// Su et al., "RoFormer", 2021.
//
// x[tokens, heads, head_dim], tables cos and sin [positions, rotary_dim / 2]. Token t uses table row start + t % seq, so that a
// batch of sequences shares one table. Elements from rotary_dim on are copied. Half-split (GPT-NeoX, Hugging Face) pairs i with
// i + rotary_dim / 2; interleaved (LLaMA as Meta and GGUF lay it out) pairs 2i with 2i + 1.
#include "include/team.h"

template <bool INTERLEAVED>
RF_DEVICE void rope(const float *x, const float *cosine, const float *sine, float *y, u32 tokens, u32 seq, u32 heads, u32 head_dim,
                    u32 rotary_dim, u32 start) {
    u32 row = Team32::row();
    u32 token = row / heads;
    if (token >= tokens) return;
    u32 half = rotary_dim / 2;
    u64 table = (u64)(start + token % seq) * half;
    const float *in = x + (u64)row * head_dim;
    float *out = y + (u64)row * head_dim;
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
