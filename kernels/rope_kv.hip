// What a layer does with queries, keys and values before attention, in one launch: queries and keys are turned by their positions (rope.hip), keys
// and values go to their slots of the cache. 32 lanes to a head of a token: first the queries' heads, then the keys', then the values'.
//
// q [tokens, heads, head_dim], k and v [tokens, kv_heads, head_dim]; the turned q and k go to yq and yk, each of which may be what it is made of. A
// position that is not in the tables is a fault of `tag` and gives NaN; a slot that is not in the cache is a fault of `slot_tag`, and nothing is
// written to the cache.
#include "include/fault.h"
#include "include/floats.h"
#include "include/turn.h"

struct RopeKv {
    const float *q, *k, *v, *cosine, *sine;
    const u32 *positions, *slots;
    float *yq, *yk;
    u32 tokens, heads, kv_heads, head_dim, rotary_dim, table_rows, slot_rows;
    u64 *fault;
    u32 tag, slot_tag;
};

template <bool INTERLEAVED, class To> RF_DEVICE void rope_kv(const RopeKv &p, typename To::Type *k_cache, typename To::Type *v_cache) {
    u32 all = p.heads + 2 * p.kv_heads, row = Team32::row(), token = row / all, head = row % all;
    if (token >= p.tokens) return;
    u32 lane = Team32::lane(), position = p.positions[token], slot = p.slots[token];
    bool is_query = head < p.heads, is_key = !is_query && head < p.heads + p.kv_heads;
    u32 kv_head = head - p.heads - (is_key ? 0 : p.kv_heads);
    u64 at = is_query ? ((u64)token * p.heads + head) * p.head_dim : ((u64)token * p.kv_heads + kv_head) * p.head_dim;
    bool kept = slot < p.slot_rows;
    if (!is_query && !kept && lane == 0) rf_fault(p.fault, p.slot_tag, token, slot);
    typename To::Type *to = (is_key ? k_cache : v_cache) + ((u64)slot * p.kv_heads + kv_head) * p.head_dim;
    if (!is_query && !is_key) {
        if (kept)
            for (u32 i = lane; i < p.head_dim; i += 32) to[i] = To::of(p.v[at + i]);
        return;
    }
    const float *in = is_query ? p.q + at : p.k + at;
    float *out = is_query ? p.yq + at : p.yk + at;
    auto put = [&](u32 i, float v) {
        out[i] = v;
        if (is_key && kept) to[i] = To::of(v);
    };
    if (position >= p.table_rows) {
        if (lane == 0) rf_fault(p.fault, p.tag, token, position);
        for (u32 i = lane; i < p.head_dim; i += 32) put(i, __builtin_nanf(""));
        return;
    }
    turn_with<INTERLEAVED>(in, p.cosine, p.sine, p.head_dim, p.rotary_dim, (u64)position * (p.rotary_dim / 2), put);
}

#define RF_ROPE_KV(name, INTERLEAVED, To)                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    rope_kv_##name(const float *q, const float *k, const float *v, const float *cosine, const float *sine, const u32 *positions,       \
                   const u32 *slots, float *yq, float *yk, To::Type *k_cache, To::Type *v_cache, u32 tokens, u32 heads, u32 kv_heads,  \
                   u32 head_dim, u32 rotary_dim, u32 table_rows, u32 slot_rows, u32 slot_tag, u64 *fault, u32 tag) {                   \
        rope_kv<INTERLEAVED, To>(RopeKv{q, k, v, cosine, sine, positions, slots, yq, yk, tokens, heads, kv_heads, head_dim,            \
                                        rotary_dim, table_rows, slot_rows, fault, tag, slot_tag},                                      \
                                 k_cache, v_cache);                                                                                    \
    }

RF_ROPE_KV(half_f32, false, ToF32)
RF_ROPE_KV(half_f16, false, ToF16)
RF_ROPE_KV(interleaved_f32, true, ToF32)
RF_ROPE_KV(interleaved_f16, true, ToF16)
