// Attention over a paged cache of heads of 257 to 576 elements on the matrix unit, for any number of tokens: the formula of paged_attention.hip.
//
// A block has up to 32 rows: a row is a token and one of the query heads that share a head of keys and values, tokens first. It does the runs of its tokens
// (runs.h) one after the other, and walks through 16 keys at a time. Each of 12 waves has 48 columns of keys, of values and of the results. A tile takes
// two barriers:
//   1. each wave multiplies its columns of queries and keys, and leaves 32 x 16 sums in LDS;
//   2. 8 threads to a row add those of all waves, apply scale, cap and mask, and leave weights in LDS, with what earlier results shrink by;
//   3. each wave multiplies the weights with its columns of values.
// Keys and values lie in a wave's own part of LDS, values transposed, two keys to a word. Where keys and values are the same memory, as in latent
// attention, it is read once. Loads of the next tile are in flight while the current one is used.
//
// Queries are rounded to the type of the matrix unit, each multiplied by a power of two before and its scores by the inverse, so that it does not
// overflow. Blocks of the cache hold a power of two of keys, 16 or more: a tile lies in one. With several parts a block has one part of the keys, and
// leaves sums of values [tokens, heads, parts, head_dim], maxima and sums of weights [tokens, heads, parts] for paged_combine.hip. grid = (kv_heads, parts, ceil(tokens * heads / kv_heads / step)), the last tokens first.
//
// sinks[h], unless sinks is null, is one more logit of head h's softmax, without a key; with several parts it is left to paged_combine.hip.
//
// A sequence, position or block number out of range is a fault of its token, accesses nothing and gives NaN.
#pragma once
#include "cache_eights.h"
#include "floats.h"
#include "grid.h"
#include "halves.h"
#include "math.h"
#include "order.h"
#include "paged.h"
#include "quantize.h"
#include "range16.h"
#include "runs.h"

#define RF_WIDE_WAVES 12u
#define RF_WIDE_ROWS 32u
#define RF_WIDE_COLUMNS 48u // of a wave
#define RF_WIDE_KEYS 16u // of a tile: with 32, NVIDIA's registers are too few, and AMD's LDS

// LDS of a block, in bytes. In a wave's part are keys, and after them the wave's sums of products, in the same place; then values. Before the first tile
// all parts hold the queries; after the last tile a wave's part holds 16 of its results.
struct WideLds {
    static constexpr u32 BK = RF_WIDE_KEYS;
    static constexpr u32 K_ROW = RF_WIDE_COLUMNS + 8, V_ROW = BK + 8, W_ROW = BK + 8; // elements
    static constexpr u32 V_EIGHT = 8 * V_ROW + 8; // eight rows, and four banks: at most two lanes that write eights of a key meet in one
    static constexpr u32 SUM_ROW = BK + 2, OUT_ROW = RF_WIDE_COLUMNS + 4; // floats
    static constexpr u32 Q_ROW = RF_WIDE_WAVES * RF_WIDE_COLUMNS + 8;
    static constexpr u32 KEYS = BK * K_ROW * 2 > RF_WIDE_ROWS * SUM_ROW * 4 ? BK * K_ROW * 2 : RF_WIDE_ROWS * SUM_ROW * 4;
    static constexpr u32 WAVE = KEYS + RF_WIDE_COLUMNS / 8 * V_EIGHT * 2;
    static constexpr u32 WEIGHTS = RF_WIDE_WAVES * WAVE, ROWS = WEIGHTS + RF_WIDE_ROWS * W_ROW * 2;
    static constexpr u32 BEGINS = ROWS + 4 * RF_WIDE_ROWS * 4, BYTES = BEGINS + 16;
    static_assert(RF_WIDE_ROWS * Q_ROW * 2 <= WEIGHTS && 16 * OUT_ROW * 4 <= WAVE, "queries and results must fit");
};

#if defined(__CUDA_ARCH__)
// More than a kernel may have without being asked for it.
extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char paged_wide16_lds[];
#endif

struct WideOperands {
    const float *q;
    const u8 *k, *v;
    const u32 *table, *seq_of, *positions;
    float *out, *tops; // results; of several parts sums of values, and maxima, behind which are the sums of weights
    u32 tokens, parts;
    u32 step; // rows of a block, at most RF_WIDE_ROWS
};

// A block's rows of one run: rows from `first` up to `end` of all rows of the head of keys and values, and the keys that some of them see.
struct WideSpan {
    u32 first, end;
    u32 token, position; // of the first row
    u32 begin, keys;
};

template <class T> struct Wide16 {
    typedef typename T::Type E;
    typedef WideLds L;
    static constexpr u32 BK = RF_WIDE_KEYS, ROW_TILES = RF_WIDE_ROWS / 16, C_TILES = RF_WIDE_COLUMNS / 16;
    // Eight elements of each of two neighbouring keys: those of a wave, and of a lane, whose step i has number lane + i * RF_WAVE.
    static constexpr u32 EIGHTS = RF_WIDE_COLUMNS / 8, PAIRS = BK / 2 * EIGHTS, STEPS = (PAIRS + RF_WAVE - 1) / RF_WAVE;

    const WideOperands &o;
    const Paged &p;
    u8 *lds;
    u32 row0, ratio, kv_head, tid, wave, lane;
    u32 shift; // of a block's keys
    RfPart<E> query[ROW_TILES][C_TILES] = {};
    typename T::Raw next_keys[STEPS][2] = {}, next_values[STEPS][2] = {};
    u32 held = 0, ahead = 0; // the block of the tile that is fetched, and of the one after it

    __attribute__((device, always_inline)) u8 *own() const { return lds + wave * L::WAVE; }
    __attribute__((device, always_inline)) E *weights() const { return (E *)(lds + L::WEIGHTS); }
    // Of each row: the factor of its scores, what its results shrink by, the factor of its results, and one more logit without a key.
    __attribute__((device, always_inline)) float *factors() const { return (float *)(lds + L::ROWS); }
    __attribute__((device, always_inline)) float *shrinks() const { return factors() + RF_WIDE_ROWS; }
    __attribute__((device, always_inline)) float *inverses() const { return shrinks() + RF_WIDE_ROWS; }
    __attribute__((device, always_inline)) float *logits() const { return inverses() + RF_WIDE_ROWS; }
    // Where the row `row` of the head of keys and values lies among all rows of tokens and heads.
    __attribute__((device, always_inline)) u64 place(u32 row) const { return (u64)(row / ratio) * p.heads + kv_head * ratio + row % ratio; }
    // From a part's maximum to its sum of weights.
    __attribute__((device, always_inline)) u64 behind() const { return (u64)o.tokens * p.heads * o.parts; }
    __attribute__((device, always_inline)) bool in(const WideSpan &s, u32 row) const { return row >= s.first && row < s.end; }

    // Queries: through LDS into the layout of the matrix unit.
    __attribute__((device, always_inline)) void load_queries(const WideSpan &s) {
        constexpr u32 FOURS = (RF_WIDE_WAVES * RF_WIDE_COLUMNS + 127) / 128, TEAMS = RF_WIDE_WAVES * RF_WAVE / 32;
        u32 tid = rf_opaque(this->tid);
        typedef E Four __attribute__((ext_vector_type(4)));
        // A team of 32 lanes has a row at a time.
#pragma unroll
        for (u32 turn = 0; turn < (RF_WIDE_ROWS + TEAMS - 1) / TEAMS; ++turn) {
            u32 r = tid / 32 + turn * TEAMS;
            if (RF_WIDE_ROWS % TEAMS != 0 && r >= RF_WIDE_ROWS) continue;
            f4 x[FOURS];
            u32 top = 0;
#pragma unroll
            for (u32 i = 0; i < FOURS; ++i) {
                u32 column = (tid % 32 + 32 * i) * 4;
                x[i] = rf_splat(0.0f);
                if (in(s, row0 + r) && column < p.head_dim) x[i] = rf_get4(o.q + place(row0 + r) * p.head_dim + column);
#pragma unroll
                for (u32 e = 0; e < 4; ++e) top = rf_larger_of(top, rf_magnitude(x[i][e]));
            }
            top = rf_larger<16>(top);
            top = rf_larger<8>(top);
            top = rf_larger<4>(top);
            top = rf_larger<2>(top);
            top = rf_larger<1>(top);
            Range16 range = rf_range16(top);
            if (tid % 32 == 0) factors()[r] = range.down;
#pragma unroll
            for (u32 i = 0; i < FOURS; ++i) {
                u32 column = (tid % 32 + 32 * i) * 4;
                Four four;
#pragma unroll
                for (u32 e = 0; e < 4; ++e) four[e] = (E)(x[i][e] * range.up);
                if (column < RF_WIDE_WAVES * RF_WIDE_COLUMNS) *(Four *)((E *)lds + r * L::Q_ROW + column) = four;
            }
        }
        rf_lds_barrier();
#pragma unroll
        for (u32 t = 0; t < ROW_TILES; ++t)
#pragma unroll
            for (u32 c = 0; c < C_TILES; ++c)
                query[t][c] = rf_y_load((const E *)lds + t * 16 * L::Q_ROW + wave * RF_WIDE_COLUMNS + c * 16, L::Q_ROW);
        rf_lds_barrier(); // the queries have been read: keys go there
    }

    // Which block holds the tile from k0 on is asked for a tile ahead: its keys are asked for without waiting.
    __attribute__((device, always_inline)) void look(const WideSpan &s, const u32 *blocks, u32 k0) {
        held = ahead;
        ahead = narrow(k0 < s.keys && k0 + BK > s.begin ? blocks[k0 >> shift] : 0);
    }
    // What does not exist, or is not seen, is 0: it may never have been written.
    __attribute__((device, always_inline)) void fetch(const WideSpan &s, u32 k0) {
        u32 eights = p.head_dim / 8, head = eights / T::EACH * T::BYTES, row = p.kv_heads * head; // bytes of a head, of all heads of a key
        bool same = o.k == o.v;
        u64 at = ((u64)held * p.block_size + (k0 & (p.block_size - 1))) * row + kv_head * head;
        const u8 *keys = o.k + at, *values = o.v + at;
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i)
#pragma unroll
            for (u32 e = 0; e < 2; ++e) {
                u32 slot = lane + i * RF_WAVE, eight = wave * EIGHTS + slot % EIGHTS, of_tile = slot / EIGHTS * 2 + e, key = k0 + of_tile;
                u32 own = of_tile * row + eight / T::EACH * T::BYTES;
                next_keys[i][e] = next_values[i][e] = typename T::Raw{};
                if (held >= p.blocks || slot >= PAIRS || eight >= eights || key - s.begin >= s.keys - s.begin) continue;
                next_keys[i][e] = T::load_of(keys + own, eight % T::EACH);
                if (!same) next_values[i][e] = T::load_of(values + own, eight % T::EACH);
            }
    }
    __attribute__((device, always_inline)) void store_values(const typename T::Raw (&from)[STEPS][2]) {
        E *values = (E *)(own() + L::KEYS);
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            u32 slot = lane + i * RF_WAVE;
            if (PAIRS % RF_WAVE != 0 && slot >= PAIRS) continue;
            u4 first = T::chunk(from[i][0]), second = T::chunk(from[i][1]);
            u32 *to = (u32 *)(values + slot % EIGHTS * L::V_EIGHT) + slot / EIGHTS;
#pragma unroll
            for (u32 e = 0; e < 8; ++e) to[e * (L::V_ROW / 2)] = halves(first[e / 2], second[e / 2], e % 2);
        }
    }
    __attribute__((device, always_inline)) void store() {
        E *keys = (E *)own();
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i)
#pragma unroll
            for (u32 e = 0; e < 2; ++e) {
                u32 slot = lane + i * RF_WAVE;
                if (PAIRS % RF_WAVE != 0 && slot >= PAIRS) continue;
                *(u4 *)(keys + (slot / EIGHTS * 2 + e) * L::K_ROW + slot % EIGHTS * 8) = T::chunk(next_keys[i][e]);
            }
        if (o.k == o.v) store_values(next_keys);
        else store_values(next_values);
    }

    // The wave's columns of 32 x 16 scores.
    __attribute__((device, always_inline)) void multiply_keys() const {
        const E *keys = (const E *)own();
        RfTile scores[ROW_TILES] = {};
#pragma unroll
        for (u32 c = 0; c < C_TILES; ++c) {
            RfPart<E> x = rf_x_load(keys + c * 16, L::K_ROW);
#pragma unroll
            for (u32 t = 0; t < ROW_TILES; ++t) rf_tile_multiply(scores[t], x, query[t][c]);
        }
        rf_wave_barrier(); // the keys have been read
        float *sums = (float *)own();
#pragma unroll
        for (u32 t = 0; t < ROW_TILES; ++t)
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e)
                sums[(t * 16 + rf_tile_b(lane, rf_tile_which(e))) * L::SUM_ROW + rf_tile_a(lane, e)] = scores[t][e];
    }

    // One run, for the part of its keys that the block has.
    __attribute__((device, always_inline)) void attend(const WideSpan &s, const u32 *blocks, u32 part) {
        constexpr u32 EACH = BK / 8; // keys of a thread
        // What follows from it is computed for each run anew: kept over all runs, it would take registers.
        tid = rf_opaque(rf_thread()), wave = narrow(tid / RF_WAVE), lane = tid % RF_WAVE;
        u32 begin = s.begin / BK * BK, each = ((s.keys - begin + BK - 1) / BK + o.parts - 1) / o.parts * BK; // whole tiles
        if (o.parts > 1 && each < RF_PART_KEYS) each = RF_PART_KEYS;
        u64 from = (u64)begin + (u64)each * part;
        u32 end = from + each < s.keys ? (u32)from + each : s.keys;
        // The thread's row among the 8 threads of each, and the keys that it sees.
        u32 r = tid / 8, mine = row0 + r;
        bool adds = tid < RF_WIDE_ROWS * 8, there = adds && in(s, mine);
        u32 last = 0, first = 0;
        if (there) {
            last = s.position + (mine / ratio - s.token) + 1;
            first = p.window != 0 && last > p.window ? last - p.window : 0;
        }
        float top = -RF_INF, total = 0.0f, inverse_cap = 1.0f / p.softcap;
        bool active = wave * RF_WIDE_COLUMNS < p.head_dim;
        u32 waves = (p.head_dim + RF_WIDE_COLUMNS - 1) / RF_WIDE_COLUMNS;
        RfTile sums[ROW_TILES][C_TILES] = {};
        if (from < s.keys) {
            load_queries(s);
            float factor = adds ? factors()[r] * p.scale : 0.0f;
            look(s, blocks, (u32)from);
            look(s, blocks, (u32)from + BK);
            fetch(s, (u32)from);
#pragma unroll 1
            for (u32 k0 = (u32)from; k0 < end; k0 += BK) {
                u32 now = held;
                if (now >= p.blocks && tid == 0 && kv_head == 0) rf_fault(p.fault, p.tag, s.token + (k0 > s.position ? k0 - s.position : 0), now);
                store();
                rf_wave_barrier();
                if (k0 + BK < end) {
                    look(s, blocks, k0 + 2 * BK);
                    fetch(s, k0 + BK);
                }
                if (active) multiply_keys();
                rf_lds_barrier();
                if (adds) {
                    typedef float Scores __attribute__((ext_vector_type(EACH)));
                    typedef E Weights __attribute__((ext_vector_type(EACH)));
                    u32 j = tid % 8 * EACH;
                    Scores score = {};
                    for (u32 w = 0; w < waves; ++w) score += *(const Scores *)((const float *)(lds + w * L::WAVE) + r * L::SUM_ROW + j);
                    float best = -RF_INF;
#pragma unroll
                    for (u32 e = 0; e < EACH; ++e) {
                        float x = score[e] * factor;
                        if (p.softcap != 0.0f) x = rf_softcap(x, p.softcap, inverse_cap);
                        if (now >= p.blocks) x = __builtin_nanf("");
                        score[e] = k0 + j + e - first < last - first ? x : -RF_INF; // one comparison: unsigned
                        best = rf_max(best, score[e]);
                    }
                    best = rf_max(best, rf_shuffle_xor<4>(best));
                    best = rf_max(best, rf_shuffle_xor<2>(best));
                    best = rf_max(top, rf_max(best, rf_shuffle_xor<1>(best)));
                    // While everything seen so far is -inf, any finite number does: all weights are 0.
                    float base = best == -RF_INF ? 0.0f : best, shrink = rf_exp2((top - base) * RF_LOG2E);
                    top = best;
                    total *= shrink;
                    Weights weight;
#pragma unroll
                    for (u32 e = 0; e < EACH; ++e) {
                        float x = rf_exp2((score[e] - base) * RF_LOG2E);
                        total += x;
                        weight[e] = (E)x;
                    }
                    *(Weights *)(weights() + r * L::W_ROW + j) = weight;
                    if (tid % 8 == 0) shrinks()[r] = shrink;
                }
                rf_lds_barrier();
                if (active) {
                    const E *values = (const E *)(own() + L::KEYS);
                    RfPart<E> weight[ROW_TILES];
                    float shrink[ROW_TILES][RF_TILE_B];
#pragma unroll
                    for (u32 t = 0; t < ROW_TILES; ++t) {
                        weight[t] = rf_y_load(weights() + t * 16 * L::W_ROW, L::W_ROW);
#pragma unroll
                        for (u32 b = 0; b < RF_TILE_B; ++b) shrink[t][b] = shrinks()[t * 16 + rf_tile_b(lane, b)];
                    }
#pragma unroll
                    for (u32 c = 0; c < C_TILES; ++c) {
                        u32 column = c * 16 + rf_x_row();
                        RfPart<E> x = rf_row_load(values + column / 8 * L::V_EIGHT + column % 8 * L::V_ROW, 0, 0);
#pragma unroll
                        for (u32 t = 0; t < ROW_TILES; ++t) {
#pragma unroll
                            for (u32 e = 0; e < RF_TILE; ++e) sums[t][c][e] *= shrink[t][rf_tile_which(e)];
                            rf_tile_multiply(sums[t][c], x, weight[t]);
                        }
                    }
                    rf_wave_barrier(); // values have been read
                }
            }
        }
        total += rf_shuffle_xor<4>(total);
        total += rf_shuffle_xor<2>(total);
        total += rf_shuffle_xor<1>(total);
        if (adds && tid % 8 == 0) {
            if (o.parts == 1) {
                float shrink = 1.0f, logit = logits()[r];
                if (logit != -RF_INF) {
                    float base = rf_max(top, logit);
                    shrink = rf_exp2((top - base) * RF_LOG2E);
                    total = total * shrink + rf_exp2((logit - base) * RF_LOG2E);
                }
                inverses()[r] = total == 0.0f ? 0.0f : shrink / total;
            } else {
                inverses()[r] = 1.0f;
                if (there) {
                    u64 at = place(mine) * o.parts + part;
                    o.tops[at] = top, o.tops[at + behind()] = total;
                }
            }
        }
        rf_lds_barrier();
        if (from < s.keys && active) store_results(s, sums, part);
        rf_lds_barrier(); // results have been read from LDS
    }
    // The wave's columns of the results, 16 rows at a time through its part of LDS.
    __attribute__((device, always_inline)) void store_results(const WideSpan &s, const RfTile (&sums)[ROW_TILES][C_TILES], u32 part) const {
        constexpr u32 FOURS = RF_WIDE_COLUMNS / 4;
        float *results = (float *)own();
        u32 lane = rf_opaque(this->lane);
#pragma unroll
        for (u32 t = 0; t < ROW_TILES; ++t) {
#pragma unroll
            for (u32 c = 0; c < C_TILES; ++c)
#pragma unroll
                for (u32 e = 0; e < RF_TILE; ++e) {
                    u32 row = rf_tile_b(lane, rf_tile_which(e));
                    results[row * L::OUT_ROW + c * 16 + rf_tile_a(lane, e)] = sums[t][c][e] * inverses()[t * 16 + row];
                }
            rf_wave_barrier();
#pragma unroll 1
            for (u32 slot = lane; slot < 16 * FOURS; slot += RF_WAVE) {
                u32 row = row0 + t * 16 + slot / FOURS, column = wave * RF_WIDE_COLUMNS + slot % FOURS * 4;
                if (!in(s, row) || column >= p.head_dim) continue;
                float *to = o.out + (place(row) * o.parts + part) * p.head_dim;
                rf_put4(to + column, *(const f4_lds *)(results + slot / FOURS * L::OUT_ROW + slot % FOURS * 4));
            }
            rf_wave_barrier();
        }
    }
    // Rows of a run whose sequence or position does not exist.
    __attribute__((device, always_inline)) void spoil(u32 first, u32 end, u32 part) const {
        u32 rows = end - first;
        for (u32 i = tid; i < rows * p.head_dim; i += RF_WIDE_WAVES * RF_WAVE) {
            u64 at = place(first + i / p.head_dim);
            at = at * o.parts + part;
            o.out[at * p.head_dim + i % p.head_dim] = o.parts == 1 ? __builtin_nanf("") : 0.0f;
            if (o.parts > 1 && i % p.head_dim == 0) o.tops[at] = -RF_INF, o.tops[at + behind()] = __builtin_nanf("");
        }
    }
};

template <class T> RF_DEVICE void paged_wide16(const WideOperands &o, const float *__restrict__ sinks, const Paged &p) {
#if defined(__CUDA_ARCH__)
    u8 *lds = paged_wide16_lds;
#else
    RF_SHARED u8 lds[WideLds::BYTES];
#endif
    rf_grid_begin();
    u32 ratio = p.heads / p.kv_heads, rows = o.tokens * ratio, part = narrow(rf_block_y());
    u32 row0 = ((rows + o.step - 1) / o.step - 1 - rf_block_z()) * o.step, stop = rf_min(row0 + o.step, rows);
    u32 tid = rf_thread();
    Wide16<T> block = {o, p, lds, row0, narrow(ratio), rf_block_x(), tid, 0, 0, (u32)__builtin_ctz(p.block_size)};
    Runs<RF_WIDE_ROWS> runs = {o.seq_of, o.positions, (u32 *)(lds + WideLds::BEGINS), row0 / ratio, narrow((stop - 1) / ratio + 1), p};
    runs.find();
    if (tid < RF_WIDE_ROWS) block.logits()[tid] = sinks ? sinks[block.kv_head * ratio + (row0 + tid) % ratio] : -RF_INF;
    rf_barrier();
#pragma unroll 1
    for (u32 at = runs.first; at < runs.end;) {
        Run run = runs.run(at);
        u32 first = run.first * ratio > row0 ? run.first * ratio : row0, end = rf_min(run.end * ratio, stop);
        if (run.known) {
            u32 position = run.position, keys = position + ((end - 1) / ratio - run.first) + 1;
            u32 begin = p.window != 0 && position >= p.window ? position - p.window + 1 : 0;
            block.attend(WideSpan{narrow(first), narrow(end), narrow(run.first), narrow(position), narrow(begin), narrow(keys)}, o.table + (u64)run.seq * p.max_blocks, part);
        } else {
            if (tid == 0 && rf_block_x() == 0) runs.fault(run);
            block.spoil(first, end, part);
        }
        at = run.end;
    }
}

#define RF_PAGED_WIDE16(name, T)                                                                                                         \
    RF_KERNEL(RF_WIDE_WAVES *RF_WAVE)                                                                                                    \
    paged_wide16_##name(const float *q, const u8 *k, const u8 *v, const u32 *table, const u32 *seq_of, const u32 *positions,            \
                        const float *sinks, float *out, float *tops, u32 tokens, u32 parts, u32 step, u32 heads, u32 kv_heads,          \
                        u32 head_dim, u32 block_size, u32 blocks, u32 sequences, u32 max_blocks, u32 window, float scale,               \
                        float softcap, u64 *fault, u32 tag) {                                                                           \
        WideOperands operands = {q, k, v, table, seq_of, positions, out, tops, tokens, narrow(parts), step};                             \
        paged_wide16<T>(operands, sinks,                                                                                                 \
                        Paged{rf_opaque(heads), narrow(kv_heads), narrow(head_dim), block_size, narrow(blocks), sequences, max_blocks,   \
                              rf_opaque(window), scale, softcap, fault, tag});                                                           \
    }
