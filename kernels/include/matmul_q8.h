// Products of packed weights with many rows of activations of 8 bits (quantize_q8), on the matrix unit: RF_MATMUL_Q8(name, Type) makes the kernels of a type of
// packed_tiles.h. The weights go from memory to the registers that the matrix unit reads, and are read once for all rows of a tile.
//
// A block makes 16 MT rows of y. A wave has 32 rows of weights. `waves_n` waves have different rows of weights; the others have the same rows and other
// blocks of 32 of k, in turns, and their sums meet in LDS at the end. A step is the blocks of the activations that LDS holds. LDS has two of them: the loads of
// the next step, and of the next weights, are in flight while one is used.
//
// The grid's second dimension is parts of k, `part_blocks` blocks each: a part's sums are a matrix of their own, and sum_parts adds them. So a block that has all
// waves' rows of weights copies a part of the activations only.
//
// Of experts a table that expert_tiles.hip makes has an entry for each tile: rows of activations that one expert has, wherever they lie.
#pragma once
#include "packed_tiles.h"
#if defined(__CUDA_ARCH__)
#include "copy_async.h"
#endif

#define RF_MATMUL_THREADS 256u
#define RF_MATMUL_WAVES (RF_MATMUL_THREADS / RF_WAVE)
// Blocks of a step.
#if defined(__CUDA_ARCH__)
#define RF_MATMUL_HELD 1024u
#else
#define RF_MATMUL_HELD (64 * RF_MATMUL_WAVES)
#endif

// Words between the scales of neighbouring blocks in LDS, whose vectors keep their alignment.
#if defined(__CUDA_ARCH__)
#define RF_REST_GAP 2u
#else
#define RF_REST_GAP 4u
#endif
// Floats from one of 16 sums in LDS to the next, so that those which a wave writes at once lie in different banks.
#if defined(__CUDA_ARCH__)
#define RF_MEET_ROW 20u
#else
#define RF_MEET_ROW 16u
#endif

// What the matrices are.
struct MatmulQ8 {
    const u8 *__restrict__ w, *__restrict__ x;
    const float *bias;
    float *y;
    u32 w_rows, x_rows; // of the whole matrices
    u32 n, row_blocks, part_blocks, waves_n;
};

// The `m` rows that a tile has: those from `first` on; or, listed, the pairs from `first` on, each of which has a row of y, and `share` of which have the same row
// of activations.
struct TileRows {
    const u32 *__restrict__ pairs;
    bool listed;
    u32 first, m, share;
    __attribute__((device, always_inline)) u32 of_y(u32 row) const { return listed ? pairs[first + row] : first + row; }
    __attribute__((device, always_inline)) u32 of_x(u32 row) const { return listed ? pairs[first + row] / share : first + row; }
};

// The experts' tiles: pairs of token and expert. An entry of `table` has those from `begin` of `order` on that have the expert, none where `count` is 0.
struct ExpertTile {
    u32 expert, begin, count;
};
struct TileList {
    const ExpertTile *__restrict__ table; // or null: one matrix for all rows
    const u32 *__restrict__ order;
    u32 tiles, experts, share;
};

#if defined(__CUDA_ARCH__)
// More than a kernel may have without being asked for it.
extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char matmul_q8_lds[];
#endif

// A step in LDS: COUNT blocks of each of ROWS rows, with the sums of the activations or without. Neighbouring blocks of a row lie in different banks.
template <u32 ROWS, u32 COUNT, bool SUMS> struct HeldStep {
    static constexpr u32 STRIDE = 2 * ROWS + 1, REST = ROWS + RF_REST_GAP;
    u4 quants[COUNT * STRIDE]; // of each block the low halves of all rows, and the high ones
    u32 d[COUNT * REST], sums[SUMS ? COUNT * REST : 1];
};

// A thread's share of a step, with the sums of the activations or without.
template <u32 ROWS, u32 COUNT, bool SUMS> struct NextStep {
    static constexpr u32 EACH = RF_MATMUL_HELD / RF_MATMUL_THREADS;
    const MatmulQ8 &a;
    u32 begin[EACH]; // of the row of each block that the thread has, or no block
    __attribute__((device, always_inline)) NextStep(const MatmulQ8 &a, const TileRows &rows) : a(a) {
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) {
            u32 row = (rf_thread() + e * RF_MATMUL_THREADS) / COUNT;
            begin[e] = row < rows.m ? rows.of_x(row) * a.row_blocks : ~0u;
        }
    }
#if !defined(__CUDA_ARCH__)
    u4 low[EACH], high[EACH];
    u2 rest[EACH];
#endif
    // From block `first` of each row on, to a step that nobody reads. What is beyond the rows and their ends is 0.
    __attribute__((device, always_inline)) void fetch(HeldStep<ROWS, COUNT, SUMS> &to, u32 first) {
        u64 blocks = (u64)a.x_rows * a.row_blocks;
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) {
            u32 f = rf_thread() + e * RF_MATMUL_THREADS, row = f / COUNT, i = f % COUNT;
            bool in = begin[e] != ~0u && first + i < a.row_blocks;
            u32 at = in ? begin[e] + first + i : 0;
            const u4 *from_low = (const u4 *)a.x + at, *from_high = (const u4 *)(a.x + 16 * blocks) + at;
            const u2 *from_rest = (const u2 *)(a.x + 32 * blocks) + at;
#if defined(__CUDA_ARCH__)
            u32 quants = rf_shared_address(to.quants + i * HeldStep<ROWS, COUNT, SUMS>::STRIDE + row), rest = i * HeldStep<ROWS, COUNT, SUMS>::REST + row;
            rf_copy_async(quants, from_low, in ? 16 : 0);
            rf_copy_async(quants + ROWS * sizeof(u4), from_high, in ? 16 : 0);
            rf_copy_async4(rf_shared_address(to.d + rest), from_rest, in ? 4 : 0);
            if constexpr (SUMS) rf_copy_async4(rf_shared_address(to.sums + rest), (const u32 *)from_rest + 1, in ? 4 : 0);
#else
            (void)to, (void)row;
            low[e] = *from_low, high[e] = *from_high, rest[e] = *from_rest;
            if (!in) low[e] = u4{0, 0, 0, 0}, high[e] = u4{0, 0, 0, 0}, rest[e] = u2{0, 0};
#endif
        }
    }
    __attribute__((device, always_inline)) void store(HeldStep<ROWS, COUNT, SUMS> &to) const {
#if !defined(__CUDA_ARCH__)
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) {
            u32 f = rf_thread() + e * RF_MATMUL_THREADS, row = f / COUNT, i = f % COUNT;
            u4 *quants = to.quants + i * HeldStep<ROWS, COUNT, SUMS>::STRIDE + row;
            quants[0] = low[e], quants[ROWS] = high[e];
            u32 place = i * HeldStep<ROWS, COUNT, SUMS>::REST + row / 16 * 16 + rf_place(row % 16);
            to.d[place] = rest[e].x;
            if constexpr (SUMS) to.sums[place] = rest[e].y;
        }
#else
        (void)to;
        rf_copy_commit();
        rf_copy_wait<0>();
#endif
    }
};

// The integers of a tile's rows of activations, their scales, and their sums times the scale: of each half, or of the whole block in the first place.
struct TileActivations {
    RfBytes q;
    float d[RF_TILE_A], sums[2][RF_TILE_A];
};
template <class W, u32 ROWS, u32 COUNT, bool SUMS> RF_DEVICE TileActivations rf_tile_activations(const HeldStep<ROWS, COUNT, SUMS> &held, u32 i, u32 tile) {
    TileActivations x;
    const u4 *low = held.quants + i * HeldStep<ROWS, COUNT, SUMS>::STRIDE + 16 * tile;
    x.q = rf_bytes_load(low, low + ROWS);
    RfOwn d = rf_own_load(held.d + i * held.REST + 16 * tile), sums = RfOwn(0);
    if constexpr (W::MIN) sums = rf_own_load(held.sums + i * held.REST + 16 * tile);
#pragma unroll
    for (u32 e = 0; e < RF_TILE_A; ++e) {
        u32 bits = d[e]; // the compiler takes the bits of a vector's element from its first
        x.d[e] = __builtin_bit_cast(float, bits);
        if constexpr (W::MIN) {
            i32 first = (i32)(sums[e] << 16) >> 16, second = (i32)sums[e] >> 16;
            x.sums[0][e] = x.d[e] * (float)(W::HALVES ? first : first + second);
            if constexpr (W::HALVES) x.sums[1][e] = x.d[e] * (float)second;
        }
    }
    return x;
}

// A sum of rf_tile_bytes times a scale of the weights. RF_TILE_FROM times a scale is exact, for that has at most 18 bits, so the result is rounded once; only
// where it may be too large the difference comes first.
template <class W> RF_DEVICE float rf_tile_scaled(float sum, float scale) {
    return W::WIDE ? (sum - RF_TILE_FROM) * scale : rf_fma(sum, scale, -RF_TILE_FROM * scale);
}

// sum + the products of a block of 16 rows of weights with 16 rows of activations.
template <class W> RF_DEVICE void rf_tile_add(RfTile &sum, const RfBytes &w, const TileScales (&s)[RF_TILE_B], const TileActivations &x) {
    RfTile first = rf_tile_bytes<W::HALVES ? RF_LOW_HALF : RF_BOTH_HALVES>(x.q, w), second;
    if constexpr (W::HALVES) second = rf_tile_bytes<RF_HIGH_HALF>(x.q, w);
#pragma unroll
    for (u32 e = 0; e < RF_TILE; ++e) {
        const TileScales &own = s[rf_tile_which(e)];
        u32 a = rf_tile_own(e);
        float v = sum[e];
        if constexpr (W::MIN) v = rf_fma(own.min[0], x.sums[0][a], v);
        if constexpr (W::MIN && W::HALVES) v = rf_fma(own.min[1], x.sums[1][a], v);
        float product = rf_tile_scaled<W>(first[e], own.d[0]);
        if constexpr (W::HALVES) product += rf_tile_scaled<W>(second[e], own.d[1]);
        v = rf_fma(x.d[a], product, v);
        sum[e] = v;
    }
}

// A tile of y: `rows` of activations, and the rows of weights of the tile `tile_n` of a matrix that begins at row `w0`.
template <class W, u32 MT> RF_DEVICE void matmul_q8_tile(const MatmulQ8 &a, const TileRows &rows, u32 tile_n, u32 w0) {
    constexpr u32 ROWS = 16 * MT, COUNT = RF_MATMUL_HELD / ROWS, NT = 2;
    typedef HeldStep<ROWS, COUNT, W::MIN> Step;
#if defined(__CUDA_ARCH__)
    Step *held = (Step *)matmul_q8_lds;
#else
    RF_SHARED Step held[2];
#endif
    static_assert(COUNT % (RF_MATMUL_WAVES * RF_RUN) == 0, "each wave of k has as many runs of a step, whatever waves_n is");
    static_assert(RF_MATMUL_WAVES * ROWS * RF_MEET_ROW * sizeof(float) <= 2 * sizeof(Step), "a tile of each wave fits");

    u32 wave = rf_uniform(rf_common(rf_thread() / RF_WAVE)), lane = rf_lane();
    u32 waves_n = a.waves_n, waves_k = RF_MATMUL_WAVES / waves_n, wave_n = wave % waves_n, wave_k = wave / waves_n;
    u32 n0 = (tile_n * waves_n + wave_n) * 16 * NT;

    u32 begin = rf_block_y() * a.part_blocks, end = rf_min(begin + a.part_blocks, a.row_blocks);
    u64 blocks = (u64)a.w_rows * a.row_blocks;
    RowFeed<W> feeds[NT][RF_TILE_B];
#pragma unroll
    for (u32 t = 0; t < NT; ++t)
#pragma unroll
        for (u32 b = 0; b < RF_TILE_B; ++b) {
            RowFeed<W> &row = feeds[t][b];
            row.w = a.w, row.blocks = blocks, row.row_blocks = a.row_blocks;
            row.begin = (w0 + rf_min(n0 + 16 * t + rf_tile_b(lane, b), a.n - 1)) * a.row_blocks;
            row.fetch(begin + wave_k * RF_RUN);
        }

    RfTile sums[NT][MT] = {};
    NextStep<ROWS, COUNT, W::MIN> step(a, rows);
    step.fetch(held[0], begin);
    step.store(held[0]);
    u32 stage = 0;
#pragma unroll 1
    for (u32 first = begin; first < end; first += COUNT, stage ^= 1) {
        rf_lds_barrier(); // the step is there, and every wave has left the one before
        bool more = first + COUNT < end;
        if (more) step.fetch(held[stage ^ 1], first + COUNT);
#pragma unroll 1
        for (u32 from = wave_k * RF_RUN; from < COUNT && first + from < end; from += waves_k * RF_RUN) {
            u32 next = first + from + waves_k * RF_RUN;
#pragma unroll
            for (u32 t = 0; t < NT; ++t)
#pragma unroll
                for (u32 b = 0; b < RF_TILE_B; ++b) feeds[t][b].turn(next);
#pragma unroll
            for (u32 s = 0; s < RF_RUN; ++s) {
                u32 i = from + s;
                if (first + i >= end) break; // for the whole wave
                RfBytes w[NT];
                TileScales scales[NT][RF_TILE_B];
#pragma unroll
                for (u32 t = 0; t < NT; ++t)
#pragma unroll
                    for (u32 b = 0; b < RF_TILE_B; ++b) {
                        TileBlock block = feeds[t][b].block(s, first + i);
                        w[t].low[b] = block.q.low, w[t].high[b] = block.q.high, scales[t][b] = block.s;
                        feeds[t][b].used(s, next + s);
                    }
#pragma unroll
                for (u32 j = 0; j < MT; ++j) {
                    TileActivations x = rf_tile_activations<W>(held[stage], i, j);
#pragma unroll
                    for (u32 t = 0; t < NT; ++t) rf_tile_add<W>(sums[t][j], w[t], scales[t], x);
                }
            }
        }
        if (more) step.store(held[stage ^ 1]);
    }

    // The waves of k meet in LDS, one of a wave's two tiles at a time.
    float *meet = (float *)held;
#pragma unroll
    for (u32 t = 0; t < NT; ++t) {
        rf_lds_barrier();
#pragma unroll
        for (u32 j = 0; j < MT; ++j)
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e)
                meet[(wave * ROWS + 16 * j + rf_tile_a(lane, e)) * RF_MEET_ROW + rf_tile_b(lane, rf_tile_which(e))] = sums[t][j][e];
        rf_lds_barrier();
#pragma unroll 1
        for (u32 f = rf_thread(); f < 16 * ROWS * waves_n; f += RF_MATMUL_THREADS) {
            u32 own = f / 16 / ROWS, m = f / 16 % ROWS, row = n0 + ((own - wave_n) * NT + t) * 16 + f % 16;
            if (m >= rows.m || row >= a.n) continue;
            float sum = 0.0f;
#pragma unroll 1
            for (u32 k = 0; k < waves_k; ++k) sum += meet[(k * waves_n * ROWS + f / 16) * RF_MEET_ROW + f % 16];
            if (a.bias) sum += a.bias[row];
            a.y[((u64)rf_block_y() * a.x_rows + rows.of_y(m)) * a.n + row] = sum;
        }
    }
}

// y = x w^T (+ bias), or y[pair, :] = w[expert of the pair] x[pair / share, :] and NaN of pairs whose id is no expert. grid = (tiles of n times those of m, parts of k).
template <class W, u32 MT> RF_DEVICE void matmul_q8(const MatmulQ8 &a, const TileList &list) {
    u32 tiles_m = list.table ? list.tiles : (a.x_rows + 16 * MT - 1) / (16 * MT), tile_m = rf_block_x() % tiles_m, tile_n = rf_block_x() / tiles_m;
    TileRows rows = {list.order, false, tile_m * 16 * MT, a.x_rows - tile_m * 16 * MT, list.share};
    u32 w0 = 0;
    if (list.table) {
        ExpertTile tile = list.table[tile_m];
        u32 expert = rf_uniform(tile.expert);
        rows.listed = true, rows.first = rf_uniform(tile.begin), rows.m = rf_uniform(tile.count);
        if (expert >= list.experts) {
            u32 width = 32 * a.waves_n;
            for (u32 f = rf_thread(); f < rows.m * width; f += RF_MATMUL_THREADS) {
                u32 row = tile_n * width + f % width;
                if (row < a.n) a.y[(u64)rows.of_y(f / width) * a.n + row] = __builtin_nanf("");
            }
            return;
        }
        if (rows.m == 0) return;
        w0 = expert * a.n;
    }
    matmul_q8_tile<W, MT>(a, rows, tile_n, w0);
}

#define RF_MATMUL_Q8_MT(name, Type, MT)                                                                                                 \
    RF_KERNEL(RF_MATMUL_THREADS)                                                                                                        \
    matmul_q8_##name##_t##MT(const u8 *__restrict__ w, const u8 *__restrict__ x, const float *bias, float *y, const u32 *table,          \
                             const u32 *order, u32 w_rows, u32 x_rows, u32 n, u32 row_blocks, u32 part_blocks, u32 waves_n, u32 tiles,   \
                             u32 experts, u32 share) {                                                                                  \
        matmul_q8<Type, MT>(MatmulQ8{w, x, bias, y, w_rows, x_rows, n, row_blocks, part_blocks, waves_n},                                \
                            TileList{(const ExpertTile *)table, order, tiles, experts, share});                                         \
    }
// Tiles of more rows have too many sums in registers: they were slower on an H200 than two of 32.
#define RF_MATMUL_Q8(name, Type)                                                                                                        \
    RF_MATMUL_Q8_MT(name, Type, 1)                                                                                                      \
    RF_MATMUL_Q8_MT(name, Type, 2)
