// Attention over 16-bit floats on the matrix unit, with f32 scores and sums: include/attention16.h, include/tile.h.
//
// A block has WAVES waves, each with 16 queries of one head, and walks through tiles of BK keys. Scores are tiles of keys by queries, so that a
// query's scores lie in few lanes and the weights are an operand of the next product as they are. Keys lie in LDS as in memory; values are
// transposed on the way there, two keys to a word, pieces of 8 keys exchanged by column so that the writes conflict two by two, not eight by eight.
// Loads of the next tile are in flight while the current one is used, with two barriers a tile.
// grid = (heads, batches, ceil(seq_q / (16 WAVES))), the blocks with most keys first where attention is causal.
#include "include/attention16.h"
#include "include/floats.h"
#include "include/functions.h"
#include "include/tile.h"

typedef u32 Chunk __attribute__((ext_vector_type(4))); // 16 bytes: 8 elements

// The lower or the upper halves of two words, as one word.
RF_DEVICE u32 halves(u32 first, u32 second, bool upper) { return upper ? first >> 16 | (second & 0xffff0000) : (first & 0xffff) | second << 16; }

template <class T, class TO, u32 D, u32 WAVES, u32 BK, bool EXTRA>
RF_DEVICE void attention16(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v, T *__restrict__ out,
                           float *__restrict__ lse, const u32 *__restrict__ lengths, const Attention16Extra &x, const Attention16 &p) {
    constexpr u32 THREADS = WAVES * RF_WAVE, BQ = WAVES * 16;
    constexpr u32 PIECES = D / 8, TILES = BK / 16;
    // What registers are too few for: the queries, and loads of the next tile.
    constexpr bool Q_IN_LDS = D * RF_PART > 1024, AHEAD = D <= 128;
    constexpr u32 K_ROW = D + 8, V_ROW = BK + 8, Q_ROW = D + 8;
    // Eight rows of the transposed values, and 16 bytes: eight lanes that write a key each of such rows never meet in a bank.
    constexpr u32 V_EIGHT = 8 * V_ROW + 8;
    constexpr u32 K_SIZE = BK * K_ROW, V_SIZE = D / 8 * V_EIGHT, OUT_SIZE = BQ * Q_ROW;
    constexpr u32 KV_SIZE = K_SIZE + V_SIZE > OUT_SIZE || Q_IN_LDS ? K_SIZE + V_SIZE : OUT_SIZE;
    RF_SHARED T lds[KV_SIZE + (Q_IN_LDS ? OUT_SIZE : 0)];
    T *keys = lds, *values = lds + K_SIZE, *staged = Q_IN_LDS ? lds + KV_SIZE : lds;

    u32 tid = rf_thread(), wave = tid / RF_WAVE, lane = rf_lane();
    u32 blocks = (p.seq_q + BQ - 1) / BQ;
    u32 q0 = (p.causal ? blocks - 1 - rf_block_z() : rf_block_z()) * BQ;
    u32 head = rf_block_x(), batch = rf_block_y(), kv_head = head / (p.heads / p.kv_heads);
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    if (q0 >= seq.queries) return;
    q += rf_plane(p.q, batch, head);
    k += rf_plane(p.k, batch, kv_head);
    v += rf_plane(p.v, batch, kv_head);

    // Keys that some query of the block sees.
    u32 begin = 0, end = seq.keys;
    if (p.causal) {
        i64 newest = (i64)rf_min(q0 + BQ, seq.queries) - 1 + seq.offset, oldest = (i64)q0 + seq.offset - p.window + 1;
        end = newest < 0 ? 0 : newest + 1 < (i64)end ? (u32)(newest + 1) : end;
        if (p.window && oldest > 0) begin = oldest < (i64)end ? (u32)oldest / BK * BK : end;
    }

    // Queries: through LDS into the layout of the matrix unit, columns beyond the end as 0.
#pragma unroll 1
    for (u32 slot = tid; slot < BQ * PIECES; slot += THREADS) {
        u32 row = slot / PIECES, piece = slot % PIECES;
        Chunk chunk = {0, 0, 0, 0};
        if (piece * 8 < p.width_k) chunk = *(const Chunk *)(q + rf_min(q0 + row, seq.queries - 1) * p.q.row + piece * 8);
        *(Chunk *)(staged + row * Q_ROW + piece * 8) = chunk;
    }
    rf_lds_barrier();
    RfPart<T> query[Q_IN_LDS ? 1 : D / 16];
    if constexpr (!Q_IN_LDS) {
#pragma unroll
        for (u32 c = 0; c < D / 16; ++c) query[c] = rf_y_load(staged + wave * 16 * Q_ROW + c * 16, Q_ROW);
        rf_lds_barrier(); // the queries have been read: keys go there
    }

    // A thread's share of a tile: K_STEPS pieces of keys, V_STEPS times two pieces of neighbouring keys' values.
    constexpr u32 K_STEPS = (BK * PIECES + THREADS - 1) / THREADS, V_STEPS = (BK / 2 * PIECES + THREADS - 1) / THREADS;
    Chunk next_keys[K_STEPS], next_values[V_STEPS][2];
    auto fetch_keys = [&](u32 k0) __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < K_STEPS; ++i) {
            u32 slot = tid + i * THREADS, row = slot / PIECES, piece = slot % PIECES;
            next_keys[i] = Chunk{0, 0, 0, 0};
            if (piece * 8 < p.width_k && row < BK) next_keys[i] = *(const Chunk *)(k + rf_min(k0 + row, seq.keys - 1) * p.k.row + piece * 8);
        }
    };
    auto store_keys = [&]() __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < K_STEPS; ++i) {
            u32 slot = tid + i * THREADS, row = slot / PIECES, piece = slot % PIECES;
            if (BK * PIECES % THREADS == 0 || row < BK) *(Chunk *)(keys + row * K_ROW + piece * 8) = next_keys[i];
        }
    };
    // Values of keys beyond the end are 0: their weights are, but 0 times anything need not be.
    auto fetch_values = [&](u32 k0) __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < V_STEPS; ++i) {
            u32 slot = tid + i * THREADS, piece = slot % 8 + slot / (4 * BK) * 8, key = k0 + slot / 8 % (BK / 2) * 2;
#pragma unroll
            for (u32 e = 0; e < 2; ++e) {
                next_values[i][e] = Chunk{0, 0, 0, 0};
                if (piece * 8 < p.width_v && key + e < seq.keys) next_values[i][e] = *(const Chunk *)(v + (key + e) * p.v.row + piece * 8);
            }
        }
    };
    auto store_values = [&]() __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < V_STEPS; ++i) {
            u32 slot = tid + i * THREADS, piece = slot % 8 + slot / (4 * BK) * 8, pair = slot / 8 % (BK / 2);
            if (BK / 2 * PIECES % THREADS != 0 && piece >= PIECES) continue;
            u32 *to = (u32 *)(values + piece * V_EIGHT) + pair;
#pragma unroll
            for (u32 e = 0; e < 8; ++e) to[e * (V_ROW / 2)] = halves(next_values[i][0][e / 2], next_values[i][1][e / 2], e % 2);
        }
    };

    RfTile sums[D / 16] = {};
    float top[RF_TILE_B], total[RF_TILE_B];
    u32 row[RF_TILE_B], first[RF_TILE_B], last[RF_TILE_B]; // query, and the keys that it sees: first <= key < last
    float slope = EXTRA && x.slopes ? x.slopes[head] : 0.0f, inverse_cap = 1.0f / p.softcap;
#pragma unroll
    for (u32 b = 0; b < RF_TILE_B; ++b) {
        row[b] = q0 + wave * 16 + rf_tile_b(lane, b);
        top[b] = -RF_INF;
        total[b] = 0.0f;
        i64 until = (i64)row[b] + seq.offset + 1, from = until - p.window;
        last[b] = p.causal && until < (i64)seq.keys ? (until < 0 ? 0 : (u32)until) : seq.keys;
        first[b] = p.causal && p.window && from > 0 ? rf_min((u32)from, last[b]) : 0;
    }
    // A weight is one exp2. Without changes of scores its factor has the scale, which is positive; with them scores may be as large as a float:
    // the difference comes first.
    float factor = EXTRA ? RF_LOG2E : p.scale * RF_LOG2E;
    auto weight_of = [&](float score, float best) __attribute__((always_inline)) {
        return rf_exp2(EXTRA ? (score - best) * factor : rf_fma(score, factor, -best * factor));
    };
    i64 wave_first = (i64)(q0 + wave * 16) + seq.offset;

    if (begin < end) {
        fetch_keys(begin);
        store_keys();
        rf_lds_barrier();
    }
#pragma unroll 1
    for (u32 k0 = begin; k0 < end; k0 += BK) {
        if (AHEAD) fetch_values(k0);
        RfTile scores[TILES] = {};
#pragma unroll
        for (u32 c = 0; c < D / 16; ++c) {
            RfPart<T> y;
            if constexpr (Q_IN_LDS) {
                y = rf_y_load(staged + wave * 16 * Q_ROW + c * 16, Q_ROW);
            } else {
                y = query[c];
            }
#pragma unroll
            for (u32 t = 0; t < TILES; ++t) rf_tile_multiply(scores[t], rf_x_load(keys + t * 16 * K_ROW + c * 16, K_ROW), y);
            if (D > 128 && c % 2 == 1) rf_tile_finish(scores[0]); // or the loads of all columns would come first
        }
#pragma unroll
        for (u32 t = 0; t < TILES; ++t) rf_tile_finish(scores[t]);
        if (!AHEAD) fetch_values(k0);
        store_values();
        rf_lds_barrier(); // values are there, keys have been read
        if (AHEAD && k0 + BK < end) fetch_keys(k0 + BK);

        bool edge = k0 + BK > seq.keys || (p.causal && ((i64)k0 + BK - 1 > wave_first || (p.window && (i64)k0 <= wave_first + 15 - p.window)));
        float shrink[RF_TILE_B];
#pragma unroll
        for (u32 b = 0; b < RF_TILE_B; ++b) {
            i64 place = (i64)row[b] + seq.offset;
            float best = top[b];
#pragma unroll
            for (u32 t = 0; t < TILES; ++t)
#pragma unroll
                for (u32 e = 0; e < RF_TILE; ++e) {
                    if (rf_tile_which(e) != b) continue;
                    u32 key = k0 + 16 * t + rf_tile_a(lane, e);
                    float s = scores[t][e];
                    if (EXTRA) {
                        s *= p.scale;
                        if (p.softcap != 0.0f) s = rf_softcap(s, p.softcap, inverse_cap);
                        if (x.mask)
                            s += x.mask[rf_plane(p.mask, batch, head) + rf_min(row[b], seq.queries - 1) * p.mask.row + rf_min(key, seq.keys - 1)];
                        s -= slope * (float)(place - (i64)key);
                    }
                    if (edge) s = key - first[b] < last[b] - first[b] ? s : -RF_INF; // one comparison: unsigned
                    scores[t][e] = s;
                    best = rf_max(best, s);
                }
            best = rf_tile_max(best);
            // While everything seen so far is -inf, any finite number does: all weights are 0.
            float base = best == -RF_INF ? 0.0f : best;
            shrink[b] = weight_of(top[b], base);
            top[b] = best;
            total[b] *= shrink[b];
#pragma unroll
            for (u32 t = 0; t < TILES; ++t)
#pragma unroll
                for (u32 e = 0; e < RF_TILE; ++e) {
                    if (rf_tile_which(e) != b) continue;
                    float weight = weight_of(scores[t][e], base);
                    total[b] += weight;
                    scores[t][e] = weight;
                }
        }
        RfPart<T> weights[TILES];
#pragma unroll
        for (u32 t = 0; t < TILES; ++t) weights[t] = rf_tile_y<T>(scores[t]);
#pragma unroll
        for (u32 c = 0; c < D / 16; ++c) {
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e) sums[c][e] *= shrink[rf_tile_which(e)];
            u32 column = c * 16 + rf_x_row();
            const T *own = values + column / 8 * V_EIGHT + column % 8 * V_ROW;
#pragma unroll
            for (u32 t = 0; t < TILES; ++t) rf_tile_multiply(sums[c], rf_row_load(own, 2 * t, 0), weights[t]);
            rf_tile_finish(sums[c]);
        }
        if (!AHEAD && k0 + BK < end) fetch_keys(k0 + BK);
        if (k0 + BK < end) store_keys();
        rf_lds_barrier(); // keys are there, values have been read
    }

#pragma unroll
    for (u32 b = 0; b < RF_TILE_B; ++b) {
        total[b] = rf_tile_sum(total[b]);
        float base = top[b] == -RF_INF ? 0.0f : top[b];
        float scale_out = 1.0f;
        if (EXTRA && x.sinks) {
            float sink = x.sinks[head], higher = rf_max(top[b], sink);
            scale_out = weight_of(top[b], higher);
            total[b] = total[b] * scale_out + weight_of(sink, higher);
            base = higher;
        }
        if (lse && rf_tile_first(lane) && row[b] < seq.queries)
            lse[((u64)batch * p.heads + head) * p.seq_q + row[b]] = total[b] == 0.0f ? -RF_INF : (EXTRA ? base : base * p.scale) + rf_log(total[b]);
        float inverse = total[b] == 0.0f ? 0.0f : scale_out / total[b];
#pragma unroll
        for (u32 c = 0; c < D / 16; ++c)
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e)
                if (rf_tile_which(e) == b)
                    staged[(wave * 16 + rf_tile_b(lane, b)) * Q_ROW + c * 16 + rf_tile_a(lane, e)] = __builtin_bit_cast(T, TO::of(sums[c][e] * inverse));
    }
    rf_lds_barrier();
    out += rf_plane(p.out, batch, head);
#pragma unroll 1
    for (u32 slot = tid; slot < BQ * PIECES; slot += THREADS) {
        u32 i = slot / PIECES, piece = slot % PIECES;
        if (q0 + i < seq.queries && piece * 8 < p.width_v) *(Chunk *)(out + (q0 + i) * p.out.row + piece * 8) = *(const Chunk *)(staged + i * Q_ROW + piece * 8);
    }
}

#define RF_ATTENTION16(name, T, TO, D, WAVES, BK)                                                                                      \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                          \
    attention16_##name##_d##D(const void *q, const void *k, const void *v, void *out, float *lse, const u32 *lengths, Attention16 p) { \
        attention16<T, TO, D, WAVES, BK, false>((const T *)q, (const T *)k, (const T *)v, (T *)out, lse, lengths,                      \
                                                {nullptr, nullptr, nullptr}, p);                                                       \
    }                                                                                                                                  \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                          \
    attention16_##name##_extra_d##D(const void *q, const void *k, const void *v, void *out, float *lse, const u32 *lengths,            \
                                    const float *mask, const float *slopes, const float *sinks, Attention16 p) {                                          \
        attention16<T, TO, D, WAVES, BK, true>((const T *)q, (const T *)k, (const T *)v, (T *)out, lse, lengths, {mask, slopes, sinks}, p); \
    }

RF_ATTENTION16(f16, RfHalf, ToF16, 64, 4, 32)
RF_ATTENTION16(f16, RfHalf, ToF16, 128, 4, 32)
RF_ATTENTION16(f16, RfHalf, ToF16, 256, 2, 16)
RF_ATTENTION16(bf16, RfBfloat, ToBf16, 64, 4, 32)
RF_ATTENTION16(bf16, RfBfloat, ToBf16, 128, 4, 32)
// There are too few registers on gfx1030, which converts bf16 to f32 first.
#if !defined(__gfx1030__)
RF_ATTENTION16(bf16, RfBfloat, ToBf16, 256, 2, 16)
#endif
