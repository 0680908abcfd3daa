// What a layer does with queries, keys and values before attention, in one launch: queries and keys are turned by their positions (rope.hip), keys
// and values go to their slots of the cache. If weights of norms are given, each head is normed first: x / sqrt(mean(x^2) + eps) * weight.
// 32 lanes to a head of a token: first the queries' heads, then the keys', then the values'.
//
// q [tokens, heads, head_dim], k and v [tokens, kv_heads, head_dim]; the turned q and k go to yq and yk, each of which may be what it is made of. A
// position that is not in the tables is a fault of `tag` and gives NaN; a slot that is not in the cache is a fault of `slot_tag`, and nothing is
// written to the cache. In q8_0 heads are whole blocks of at most 256 elements: a turned key goes through LDS, where each lane takes four neighbours.
#include "include/cache_rows.h"
#include "include/fault.h"
#include "include/grid.h"
#include "include/turn.h"

// The most elements of a head in q8_0.
#define RF_MOST_OF_HEAD 256

struct RopeKv {
    const float *q, *k, *v, *cosine, *sine;
    const u32 *positions, *slots;
    const float *q_norm, *k_norm; // or null
    float *yq, *yk;
    float eps;
    u32 tokens, heads, kv_heads, head_dim, rotary_dim, table_rows, slot_rows;
    u64 *fault;
    u32 tag, slot_tag;
};

// Where head `head` of a token lies, and where it goes.
struct RopeKvHead {
    bool is_query, is_key, kept;
    u32 lane, position;
    u64 at;   // of q, or of k and v
    u64 slot; // elements before it in the cache
    RF_DEVICE RopeKvHead of(const RopeKv &p, u32 token, u32 head) {
        u32 slot = p.slots[token];
        bool is_query = head < p.heads, is_key = !is_query && head < p.heads + p.kv_heads;
        u32 kv_head = head - p.heads - (is_key ? 0 : p.kv_heads);
        u64 at = is_query ? ((u64)token * p.heads + head) * p.head_dim : ((u64)token * p.kv_heads + kv_head) * p.head_dim;
        bool kept = slot < p.slot_rows;
        if (!is_query && !kept && Team32::lane() == 0) rf_fault(p.fault, p.slot_tag, token, slot);
        return {is_query, is_key, kept, Team32::lane(), p.positions[token], at, ((u64)slot * p.kv_heads + kv_head) * p.head_dim};
    }
};

// A head, normed.
struct NormedHead {
    const float *x, *norm;
    float factor;
    __attribute__((device, always_inline)) float operator[](u32 i) const { return x[i] * factor * norm[i]; }
};

// A query or a key: put(i, value) of each element of the turned head.
template <bool INTERLEAVED, class Put> RF_DEVICE void rope_kv_turn(const RopeKv &p, const RopeKvHead &h, u32 token, Put put) {
    if (h.position >= p.table_rows) {
        if (h.lane == 0) rf_fault(p.fault, p.tag, token, h.position);
        for (u32 i = h.lane; i < p.head_dim; i += 32) put(i, __builtin_nanf(""));
        return;
    }
    const float *in = h.is_query ? p.q + h.at : p.k + h.at;
    const float *norm = h.is_query ? p.q_norm : p.k_norm;
    u64 table = (u64)h.position * (p.rotary_dim / 2);
    if (norm) {
        float squares = 0.0f;
        for (u32 i = h.lane; i < p.head_dim; i += 32) squares = rf_fma(in[i], in[i], squares);
        float factor = rf_rsqrt(Team32::sum(squares) * rf_rcp((float)p.head_dim) + p.eps);
        turn_with<INTERLEAVED>(NormedHead{in, norm, factor}, p.cosine, p.sine, p.head_dim, p.rotary_dim, table, put);
    } else {
        turn_with<INTERLEAVED>(in, p.cosine, p.sine, p.head_dim, p.rotary_dim, table, put);
    }
}

template <bool INTERLEAVED, class To> RF_DEVICE void rope_kv_floats(const RopeKv &p, u8 *k_cache, u8 *v_cache) {
    u32 all = p.heads + 2 * p.kv_heads, row = Team32::row(), token = row / all;
    if (token >= p.tokens) return;
    RopeKvHead h = RopeKvHead::of(p, token, row % all);
    typename To::Type *to = (typename To::Type *)(h.is_key ? k_cache : v_cache) + h.slot;
    if (!h.is_query && !h.is_key) {
        if (h.kept)
            for (u32 i = h.lane; i < p.head_dim; i += 32) to[i] = To::of(p.v[h.at + i]);
        return;
    }
    float *out = h.is_query ? p.yq + h.at : p.yk + h.at;
    rope_kv_turn<INTERLEAVED>(p, h, token, [&](u32 i, float v) {
        out[i] = v;
        if (h.is_key && h.kept) to[i] = To::of(v);
    });
}

// All threads of the block meet at its barrier.
template <bool INTERLEAVED> RF_DEVICE void rope_kv_q8_0(const RopeKv &p, u8 *k_cache, u8 *v_cache) {
    RF_SHARED float turned[RF_ROWS_PER_BLOCK][RF_MOST_OF_HEAD];
    u32 all = p.heads + 2 * p.kv_heads, row = Team32::row(), token = row / all;
    bool there = token < p.tokens;
    RopeKvHead h = RopeKvHead::of(p, there ? token : 0, there ? row % all : 0);
    float *own = turned[rf_thread() / 32];
    if (there && (h.is_query || h.is_key)) {
        float *out = h.is_query ? p.yq + h.at : p.yk + h.at;
        rope_kv_turn<INTERLEAVED>(p, h, token, [&](u32 i, float v) {
            out[i] = v;
            if (h.is_key) own[i] = v;
        });
    }
    rf_lds_barrier();
    if (!there || h.is_query || !h.kept) return;
    u8 *to = (h.is_key ? k_cache : v_cache) + rf_stored_bytes<ToQ8_0>(h.slot);
    for (u32 first = 0; first < p.head_dim; first += 128) {
        u32 c = first + h.lane * 4;
        bool in = c < p.head_dim;
        f4 v = rf_splat(0.0f);
        if (in && h.is_key) v = *(f4_lds *)(own + c);
        if (in && !h.is_key) v = rf_get4(p.v + h.at + c);
        rf_put_q8_0(to + rf_stored_bytes<ToQ8_0>(c), c / 4 % 8, v, in);
    }
}
template <bool INTERLEAVED, class To> RF_DEVICE void rope_kv(const RopeKv &p, u8 *k_cache, u8 *v_cache) {
    rf_grid_begin();
    if constexpr (Stored<To>::block == 1) rope_kv_floats<INTERLEAVED, To>(p, k_cache, v_cache);
    else rope_kv_q8_0<INTERLEAVED>(p, k_cache, v_cache);
}

#define RF_ROPE_KV(name, INTERLEAVED, To)                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    rope_kv_##name(const float *q, const float *k, const float *v, const float *cosine, const float *sine, const u32 *positions,       \
                   const u32 *slots, const float *q_norm, const float *k_norm, float *yq, float *yk, u8 *k_cache, u8 *v_cache,         \
                   float eps, u32 tokens, u32 heads, u32 kv_heads, u32 head_dim, u32 rotary_dim, u32 table_rows, u32 slot_rows,        \
                   u32 slot_tag, u64 *fault, u32 tag) {                                                                                \
        rope_kv<INTERLEAVED, To>(RopeKv{q, k, v, cosine, sine, positions, slots, q_norm, k_norm, yq, yk, eps, tokens, heads,           \
                                        kv_heads, head_dim, rotary_dim, table_rows, slot_rows, fault, tag, slot_tag},                  \
                                 k_cache, v_cache);                                                                                    \
    }

RF_ROPE_KV(half_f32, false, ToF32)
RF_ROPE_KV(half_f16, false, ToF16)
RF_ROPE_KV(half_bf16, false, ToBf16)
RF_ROPE_KV(half_q8_0, false, ToQ8_0)
RF_ROPE_KV(interleaved_f32, true, ToF32)
RF_ROPE_KV(interleaved_f16, true, ToF16)
RF_ROPE_KV(interleaved_bf16, true, ToBf16)
RF_ROPE_KV(interleaved_q8_0, true, ToQ8_0)
