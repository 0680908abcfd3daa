// Attention over 16-bit floats: its operands, for every main loop.
//
// out[i] = sum over keys j that query i sees of softmax_j(score(i, j)) v[j], and lse[i] = ln of the sum of exp(score).
// score = cap(scale q[i] . k[j]) + mask[i, j] - slope (i + offset - j), with cap(s) = softcap tanh(s / softcap), or s where softcap is 0.
// Query i sees key j below seq_k; with `causal` where j <= i + offset; with a window also where i + offset - j < window. A sink is one more
// score, of a key whose value is 0. A query that sees nothing gives zeros and an lse of -inf.
// Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer calculation", 2018.
#pragma once
#include "strides.h"

// With lengths `[batch][2]`, sequence b has lengths[b][0] queries, whose rows alone are written, and lengths[b][1] keys; both are at most seq_q and
// seq_k, and the last query lines up with the last key as without.
struct Attention16 {
    u32 seq_q, seq_k, heads, kv_heads;
    u32 width_k, width_v; // elements of a query and a key, and of a value: multiples of 8
    u32 causal, window;   // 0: no window
    i32 offset;
    float scale, softcap;
    u32 none;
    RfStrides q, k, v, out, mask; // rows begin at multiples of 16 bytes, those of the mask anywhere
};

// What changes scores: mask in f32, slopes and sinks [heads]. Each may be null.
struct Attention16Extra {
    const float *mask, *slopes, *sinks;
};

// One sequence: its queries and keys, and the offset of its diagonal.
struct Sequence16 {
    u32 queries, keys;
    i32 offset;
};
RF_DEVICE Sequence16 rf_sequence16(const Attention16 &p, const u32 *lengths, u32 batch) {
    if (!lengths) return {p.seq_q, p.seq_k, p.offset};
    u32 queries = lengths[2 * batch], keys = lengths[2 * batch + 1];
    return {queries, keys, (i32)(keys - queries)};
}
