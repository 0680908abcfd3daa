// Attention of one block's queries over 16-bit floats on the matrix unit: the main loop of attention16_strided.h, attention16_split.hip and
// paged16.h, which say where queries, keys and values lie and where results go. tile.h.
//
// A block has WAVES waves and walks through tiles of BK keys. All of them copy; the first ROWS have 16 queries each, which is all of them in most
// kernels. Scores are tiles of keys by queries, so that a query's scores lie in few lanes and the weights are an operand of the next product as they
// are. Keys lie in LDS as in memory; values are transposed on the way there, two keys to a word, pieces of 8 keys exchanged by column so that the
// writes conflict two by two, not eight by eight. Loads of the next tile are in flight while the current one is used, with two barriers a tile.
#pragma once
#include "attention16.h"
#include "functions.h"
#include "halves.h"
#include "tile.h"

typedef u32 Chunk __attribute__((ext_vector_type(4))); // 16 bytes: 8 elements

// The queries of a block, and the keys that they can see: query i is that at position i + offset of its sequence.
struct Span16 {
    u32 first_query, queries; // the block's first, and one past the last that there is
    u32 keys;
    i64 offset;
    bool causal;
    u32 window;          // 0: none
    u32 part = 0, parts = 1; // of the keys, where Memory::IN_PARTS
};

// A number in two parts, of which only the first differs between the threads.
struct Own16 {
    u32 own, common;
};

// `Memory` has the type of the operands (Type) and of the results (Out), and for 8 elements at a time, `piece` of them from the first:
//   IN_PARTS                 whether a block has a part of the keys
//   thread()                 the number of the thread
//   token(row)               the token that query `row` belongs to: keys are visible by tokens
//   query(i, row, piece)     query `row`, the block's i-th
//   factor(i)                what the scores of the block's i-th query are multiplied by, beside `scale`
//   look(k0)                 before key(k0, ..), for every tile in order
//   key(k0, i, piece)        key k0 + i, as it is read (Raw); a key that does not exist may be anything
//   value(k0, i, piece)      value k0 + i; 0 where the key does not exist
//   chunk(raw)               what was read as elements of Type
//   adjust(score, row, key)  a score with everything that EXTRA stands for
//   finish(row, top, total)  the sum of weights for the largest score (times log2 e without EXTRA), with what comes after the last key; returns what
//                            the results are scaled by
//   store(row, at, chunk)    16 bytes of a result from its byte `at` on
template <class Memory, u32 D, u32 WAVES, u32 BK, bool EXTRA, u32 ROWS = WAVES>
RF_DEVICE void rf_attention16(Memory &memory, const Span16 &s, float scale) {
    typedef typename Memory::Type T;
    typedef typename Memory::Out Out;
    typedef typename Memory::Raw Raw;
    constexpr u32 THREADS = WAVES * RF_WAVE, BQ = ROWS * 16;
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

    u32 tid = memory.thread(), wave = tid / RF_WAVE, lane = tid % RF_WAVE;
    u32 q0 = s.first_query;
    bool has_rows = ROWS == WAVES || wave < ROWS;
    // Keys that some query of the block sees.
    u32 begin = 0, end = s.keys;
    if (s.causal) {
        i64 newest = (i64)memory.token(rf_min(q0 + BQ, s.queries) - 1) + s.offset, oldest = (i64)memory.token(q0) + s.offset - s.window + 1;
        end = newest < 0 ? 0 : newest + 1 < (i64)end ? (u32)(newest + 1) : end;
        if (s.window && oldest > 0) begin = oldest < (i64)end ? (u32)oldest / BK * BK : end;
    }
    if constexpr (Memory::IN_PARTS) {
        u32 each = ((end - begin + BK - 1) / BK + s.parts - 1) / s.parts * BK; // whole tiles
        begin = (u64)each * s.part < end - begin ? begin + each * s.part : end;
        end = end - begin < each ? end : begin + each;
    }

    // Queries: through LDS into the layout of the matrix unit.
#pragma unroll 1
    for (u32 slot = tid; slot < BQ * PIECES; slot += THREADS) {
        u32 i = slot / PIECES, piece = slot % PIECES;
        *(Chunk *)(staged + i * Q_ROW + piece * 8) = memory.query(i, q0 + i, piece);
    }
    rf_lds_barrier();
    RfPart<T> query[Q_IN_LDS ? 1 : D / 16];
    if constexpr (!Q_IN_LDS) {
#pragma unroll
        for (u32 c = 0; c < D / 16; ++c) query[c] = rf_y_load(staged + (has_rows ? wave : 0) * 16 * Q_ROW + c * 16, Q_ROW);
        rf_lds_barrier(); // the queries have been read: keys go there
    }

    // A thread's share of a tile: K_STEPS pieces of keys, V_STEPS times two pieces of neighbouring keys' values.
    constexpr u32 K_STEPS = (BK * PIECES + THREADS - 1) / THREADS, V_STEPS = (BK / 2 * PIECES + THREADS - 1) / THREADS;
    Raw next_keys[K_STEPS], next_values[V_STEPS][2];
    auto fetch_keys = [&](u32 k0) __attribute__((always_inline)) {
        memory.look(k0);
#pragma unroll
        for (u32 i = 0; i < K_STEPS; ++i) {
            u32 own = tid / PIECES, step = i * (THREADS / PIECES);
            next_keys[i] = Raw{};
            if (BK * PIECES % THREADS == 0 || own + step < BK) next_keys[i] = memory.key(k0, {own, step}, {tid % PIECES, 0});
        }
    };
    auto store_keys = [&]() __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < K_STEPS; ++i) {
            u32 slot = tid + i * THREADS, row = slot / PIECES, piece = slot % PIECES;
            if (BK * PIECES % THREADS == 0 || row < BK) *(Chunk *)(keys + row * K_ROW + piece * 8) = Memory::chunk(next_keys[i]);
        }
    };
    // Values of keys that do not exist are 0: their weights are, but 0 times anything need not be.
    auto fetch_values = [&](u32 k0) __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < V_STEPS; ++i) {
            u32 own = tid / 8 % (BK / 2) * 2, piece = tid % 8 + tid / (4 * BK) * 8, step = i * (THREADS / (4 * BK)) * 8;
#pragma unroll
            for (u32 e = 0; e < 2; ++e) next_values[i][e] = memory.value(k0, {own, e}, {piece, step});
        }
    };
    auto store_values = [&]() __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < V_STEPS; ++i) {
            u32 slot = tid + i * THREADS, piece = slot % 8 + slot / (4 * BK) * 8, pair = slot / 8 % (BK / 2);
            if (BK / 2 * PIECES % THREADS != 0 && piece >= PIECES) continue;
            Chunk first = Memory::chunk(next_values[i][0]), second = Memory::chunk(next_values[i][1]);
            u32 *to = (u32 *)(values + piece * V_EIGHT) + pair;
#pragma unroll
            for (u32 e = 0; e < 8; ++e) to[e * (V_ROW / 2)] = halves(first[e / 2], second[e / 2], e % 2);
        }
    };

    RfTile sums[D / 16] = {};
    float top[RF_TILE_B], total[RF_TILE_B];
    u32 row[RF_TILE_B], first[RF_TILE_B], last[RF_TILE_B]; // query, and the keys that it sees: first <= key < last
    float scales[RF_TILE_B], factor[RF_TILE_B];
#pragma unroll
    for (u32 b = 0; b < RF_TILE_B; ++b) {
        row[b] = q0 + wave * 16 + rf_tile_b(lane, b);
        top[b] = -RF_INF;
        total[b] = 0.0f;
        scales[b] = scale * memory.factor((has_rows ? wave : 0) * 16 + rf_tile_b(lane, b));
        i64 until = (i64)memory.token(row[b]) + s.offset + 1, from = until - s.window;
        last[b] = s.causal && until < (i64)s.keys ? (until < 0 ? 0 : (u32)until) : s.keys;
        first[b] = s.causal && s.window && from > 0 ? rf_min((u32)from, last[b]) : 0;
    }
    // A weight is one exp2. Without changes of scores its factor has the scale, which is positive, and `top` has the factor, too: what is rounded
    // there is the same for all that is compared with it. With changes scores may be as large as a float: the difference comes first.
#pragma unroll
    for (u32 b = 0; b < RF_TILE_B; ++b) factor[b] = EXTRA ? RF_LOG2E : scales[b] * RF_LOG2E;
    i64 wave_first = (i64)memory.token(q0 + wave * 16) + s.offset;

    if (begin < end) {
        fetch_keys(begin);
        store_keys();
        rf_lds_barrier();
    }
#pragma unroll 1
    for (u32 k0 = begin; k0 < end; k0 += BK) {
        if (AHEAD) fetch_values(k0);
        RfTile scores[TILES] = {};
        if (has_rows) {
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
        }
        if (!AHEAD) fetch_values(k0);
        store_values();
        rf_lds_barrier(); // values are there, keys have been read
        if (AHEAD && k0 + BK < end) fetch_keys(k0 + BK);

        if (has_rows) {
            bool edge = k0 + BK > s.keys || (s.causal && ((i64)k0 + BK - 1 > wave_first || (s.window && (i64)k0 <= wave_first + 15 - s.window)));
            float shrink[RF_TILE_B];
#pragma unroll
            for (u32 b = 0; b < RF_TILE_B; ++b) {
                float best = -RF_INF;
#pragma unroll
                for (u32 t = 0; t < TILES; ++t)
#pragma unroll
                    for (u32 e = 0; e < RF_TILE; ++e) {
                        if (rf_tile_which(e) != b) continue;
                        u32 key = k0 + 16 * t + rf_tile_a(lane, e);
                        float score = scores[t][e];
                        if (EXTRA) score = memory.adjust(score * scales[b], row[b], key);
                        if (edge) score = key - first[b] < last[b] - first[b] ? score : -RF_INF; // one comparison: unsigned
                        scores[t][e] = score;
                        best = rf_max(best, score);
                    }
                best = rf_max(top[b], EXTRA ? rf_tile_max(best) : rf_tile_max(best) * factor[b]);
                // While everything seen so far is -inf, any finite number does: all weights are 0.
                float base = best == -RF_INF ? 0.0f : best;
                shrink[b] = rf_exp2(EXTRA ? (top[b] - base) * factor[b] : top[b] - base);
                top[b] = best;
                total[b] *= shrink[b];
#pragma unroll
                for (u32 t = 0; t < TILES; ++t)
#pragma unroll
                    for (u32 e = 0; e < RF_TILE; ++e) {
                        if (rf_tile_which(e) != b) continue;
                        float weight = rf_exp2(EXTRA ? (scores[t][e] - base) * factor[b] : rf_fma(scores[t][e], factor[b], -base));
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
        }
        if (!AHEAD && k0 + BK < end) fetch_keys(k0 + BK);
        if (k0 + BK < end) store_keys();
        rf_lds_barrier(); // keys are there, values have been read
    }

    float inverse[RF_TILE_B];
#pragma unroll
    for (u32 b = 0; has_rows && b < RF_TILE_B; ++b) {
        total[b] = rf_tile_sum(total[b]);
        float shrink = memory.finish(row[b], top[b], total[b]);
        inverse[b] = total[b] == 0.0f ? 0.0f : shrink / total[b];
    }
    // Results pass through LDS, so many columns at a time.
    constexpr u32 PASSES = sizeof(Out) / sizeof(T), OUT_ROW = Q_ROW / PASSES, CHUNKS = PIECES;
    Out *results = (Out *)staged;
#pragma unroll
    for (u32 pass = 0; pass < PASSES; ++pass) {
        if (pass > 0) rf_lds_barrier();
#pragma unroll
        for (u32 b = 0; has_rows && b < RF_TILE_B; ++b)
#pragma unroll
            for (u32 c = 0; c < D / 16 / PASSES; ++c)
#pragma unroll
                for (u32 e = 0; e < RF_TILE; ++e)
                    if (rf_tile_which(e) == b)
                        results[(wave * 16 + rf_tile_b(lane, b)) * OUT_ROW + c * 16 + rf_tile_a(lane, e)] =
                            Memory::result(sums[pass * (D / 16 / PASSES) + c][e] * inverse[b]);
        rf_lds_barrier();
#pragma unroll 1
        for (u32 slot = tid; slot < BQ * CHUNKS; slot += THREADS) {
            u32 i = slot / CHUNKS, chunk = slot % CHUNKS;
            if (q0 + i < s.queries) memory.store(q0 + i, pass * D * sizeof(T) + chunk * 16, *(const Chunk *)((const T *)results + i * Q_ROW + chunk * 8));
        }
    }
}
