// What latent attention does with queries and with what is kept of a token, in one launch. A query of a head is [plain | turned part of q], a row of the
// cache [normed | turned] of a row of kv: x / sqrt(mean(x^2) + eps) * norm of its first `rank` elements, the others turned by the token's position
// (rope.hip), or as they are if there are no positions. A block to a row, four elements to a thread: of each token first its heads' queries, then its row
// of the cache.
//
// plain [tokens, heads, rank], q [tokens, heads, q_row] of which the last `shared` elements are turned, kv [tokens, rank + shared],
// y [tokens, heads, rank + shared]. A position that is not in the tables is a fault of `tag` and gives NaN in the turned part; a slot that is not in the
// cache is a fault of `slot_tag`, and nothing is written to the cache. rank and shared are whole fours, in
// q8_0 whole blocks, and 1024 elements at most together.
#include "include/cache_rows.h"
#include "include/fault.h"
#include "include/grid.h"

struct LatentKv {
    const float *plain, *q, *kv, *cosine, *sine;
    const u32 *positions, *slots; // positions: or null
    const float *norm;
    float *y;
    float eps;
    u32 heads, rank, shared, q_row, rotary_dim, interleaved, table_rows, slot_rows;
    u64 *fault;
    u32 tag, slot_tag;
};

// Four neighbours from element c of a row on, if they are `in` it. All threads call it together.
template <class To> RF_DEVICE void latent_put(u8 *row, u32 c, f4 v, bool in) {
    if constexpr (Stored<To>::block == 1) {
        if (in) rf_store4_as<To>((typename To::Type *)row + c, v, 4);
    } else {
        rf_put_q8_0(row + rf_stored_bytes<To>(c), c / 4 % 8, v, in);
    }
}

// Element i of a part that is turned by the row of the tables that begins at `table`: each by itself, so that a lane has neighbours.
RF_DEVICE float latent_turned(const LatentKv &p, const float *in, u64 table, u32 i) {
    if (i >= p.rotary_dim) return in[i];
    u32 half = p.rotary_dim / 2;
    bool second = p.interleaved ? i % 2 != 0 : i >= half;
    u32 pair = p.interleaved ? i / 2 : second ? i - half : i;
    float a = in[p.interleaved ? 2 * pair : pair], b = in[p.interleaved ? 2 * pair + 1 : pair + half];
    float c = p.cosine[table + pair], s = p.sine[table + pair];
    return second ? rf_fma(a, s, b * c) : rf_fma(a, c, -(b * s));
}

// A thread's four of a row: of `first` [rank], normed if `norm` is not null, or of `last` [shared], turned.
template <class To>
RF_DEVICE void latent_row(const LatentKv &p, u32 token, const float *first, const float *norm, const float *last, u8 *out) {
    u32 c = rf_thread() * 4;
    bool of_first = c < p.rank, in = c < p.rank + p.shared;
    f4 v = rf_splat(0.0f), weight = rf_splat(1.0f);
    if (of_first) {
        v = rf_get4(first + c);
        if (norm) weight = rf_get4(norm + c);
    } else if (in) {
        u32 position = p.positions ? p.positions[token] : 0;
        bool known = !p.positions || position < p.table_rows;
        if (!known && c == p.rank) rf_fault(p.fault, p.tag, token, position);
        u64 table = (u64)position * (p.rotary_dim / 2);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) v[e] = known ? latent_turned(p, last, table, c - p.rank + e) : __builtin_nanf("");
    }
    if (norm) {
        float factor = rf_rsqrt(Team256::sum(of_first ? rf_sum4(v * v) : 0.0f) * rf_rcp((float)p.rank) + p.eps);
        if (of_first) v = v * factor * weight;
    }
    latent_put<To>(out, c, v, in);
}

template <class To> RF_DEVICE void latent_kv(const LatentKv &p, u8 *cache) {
    rf_grid_begin();
    u32 all = p.heads + 1, token = Team256::row() / all, head = Team256::row() % all, kept = p.rank + p.shared;
    if (head < p.heads) {
        u64 at = (u64)token * p.heads + head;
        latent_row<ToF32>(p, token, p.plain + at * p.rank, nullptr, p.q + (at + 1) * p.q_row - p.shared, (u8 *)(p.y + at * kept));
        return;
    }
    u32 slot = p.slots[token];
    if (slot >= p.slot_rows) {
        if (rf_thread() == 0) rf_fault(p.fault, p.slot_tag, token, slot);
        return;
    }
    const float *kv = p.kv + (u64)token * kept;
    latent_row<To>(p, token, kv, p.norm, kv + p.rank, cache + rf_stored_bytes<To>((u64)slot * kept));
}

#define RF_LATENT_KV(name, To)                                                                                                          \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    latent_kv_##name(const float *plain, const float *q, const float *kv, const float *cosine, const float *sine, const u32 *positions, \
                     const u32 *slots, const float *norm, float *y, u8 *cache, float eps, u32 heads, u32 rank, u32 shared, u32 q_row,  \
                     u32 rotary_dim, u32 interleaved, u32 table_rows, u32 slot_rows, u32 slot_tag, u64 *fault, u32 tag) {              \
        latent_kv<To>(LatentKv{plain, q, kv, cosine, sine, positions, slots, norm, y, eps, heads, rank, shared, q_row, rotary_dim,     \
                               interleaved, table_rows, slot_rows, fault, tag, slot_tag},                                              \
                      cache);                                                                                                          \
    }

RF_LATENT_KV(f32, ToF32)
RF_LATENT_KV(f16, ToF16)
RF_LATENT_KV(bf16, ToBf16)
RF_LATENT_KV(q8_0, ToQ8_0)
