// Products of packed weights with many rows of activations in f16 (half_rows.h), on the matrix unit: RF_PACKED16(name, Type) makes the kernels of a type of
// packed_tiles.h. The weights go from memory to the registers that the matrix unit reads, where they become f16, and are read once for all rows of a tile.
//
// A block makes 16 MT rows of y. A wave has 32 rows of weights. `waves_n` waves have different rows of weights; the others have the same rows and other
// blocks of 32 of k, in turns, and their sums meet in LDS at the end. A step is the columns of the activations that LDS holds. The loads of the next step, and
// of the next weights, are in flight while one is used: NVIDIA's to other places in LDS, AMD's to registers.
//
// The grid's second dimension is parts of k, `part_blocks` blocks each: a part's sums are a matrix of their own, and sum_parts adds them. So a block that has all
// waves' rows of weights copies a part of the activations only.
//
// Up to three matrices of one type share the activations: their tiles follow one another in the grid's first dimension.
//
// Of experts a table that expert_tiles.hip makes has an entry for each tile: rows of activations that one expert has, wherever they lie.
#pragma once
#include "gemm16.h"
#include "grid.h"
#include "packed_tiles.h"
#if defined(__CUDA_ARCH__)
#include "copy_async.h"
#endif

// Threads of a block; blocks of 32 of all rows of a step; steps that LDS holds; halves between its blocks and between its rows, so that what a wave reads at once
// lies in different banks; and floats from one of 16 sums in LDS to the next, for the same reason.
#if defined(__CUDA_ARCH__)
#define RF_PACKED_THREADS 512u
// Cards of compute capability 8.6, 8.9 and 12.0 give a block 99 KiB at most.
#if __CUDA_ARCH__ >= 900
#define RF_PACKED_HELD 512u
#define RF_PACKED_STEPS 3u
#else
#define RF_PACKED_HELD 256u
#define RF_PACKED_STEPS 4u
#endif
#define RF_PACKED_GAP 8u
#define RF_PACKED_ROW_GAP 32u
#define RF_PACKED_MEET 20u
#else
#define RF_PACKED_THREADS 256u
#define RF_PACKED_HELD (64 * RF_PACKED_WAVES)
#define RF_PACKED_STEPS 1u
#define RF_PACKED_GAP 0u
#define RF_PACKED_ROW_GAP 8u
#define RF_PACKED_MEET 16u
#endif
#define RF_PACKED_WAVES (RF_PACKED_THREADS / RF_WAVE)

// What the matrices are.
struct Packed16 {
    const u8 *__restrict__ w;
    const u4 *RF_WRITTEN_BEFORE x; // eight halves each
    const i32 *RF_WRITTEN_BEFORE exponents;
    const float *bias;
    float *y;
    u32 w_rows, x_rows; // of the whole matrices
    u32 n, row_blocks, part_blocks, waves_n;
};
// Another matrix for the same activations, whose tiles begin at tile `first` of n.
struct Another16 {
    const u8 *w;
    const float *bias;
    float *y;
    u32 n, first;
    __attribute__((device, always_inline)) void instead(Packed16 &a, u32 &tile_n) const { a.w = w, a.bias = bias, a.y = y, a.n = a.w_rows = n, tile_n -= first; }
};

// The `m` rows that a tile has: those from `first` on; or, listed, the pairs from `first` on, each of which has a row of y, and `share` of which have the same row
// of activations.
struct TileRows {
    const u32 *RF_WRITTEN_BEFORE pairs;
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
    const ExpertTile *RF_WRITTEN_BEFORE table; // or null: one matrix for all rows
    const u32 *RF_WRITTEN_BEFORE order;
    u32 tiles, experts, share;
};

#if defined(__CUDA_ARCH__)
// More than a kernel may have without being asked for it.
extern __attribute__((shared)) __attribute__((aligned(16))) unsigned char packed16_lds[];
#endif

// A step in LDS: COUNT blocks of 32 of each of ROWS rows.
template <u32 ROWS, u32 COUNT> struct HeldStep {
    static constexpr u32 BLOCK = 32 + RF_PACKED_GAP, STRIDE = COUNT * BLOCK + RF_PACKED_ROW_GAP;
    RfHalf halves[ROWS * STRIDE];
};
// What a block has in LDS: steps, at the end the sums of all waves in their place, and of each row its exponent and the row of y.
template <u32 ROWS, u32 COUNT> struct Packed16Held {
    HeldStep<ROWS, COUNT> steps[RF_PACKED_STEPS];
    u32 y_rows[ROWS];
    i32 exponents[ROWS];
};

// A thread's share of a step: every OF-th piece of eight halves of one row.
template <u32 ROWS, u32 COUNT> struct NextStep {
    static constexpr u32 OF = RF_PACKED_THREADS / ROWS, EACH = 4 * COUNT / OF;
    static_assert(OF % 4 == 0, "a thread's pieces lie at the same place of their blocks");
    typedef HeldStep<ROWS, COUNT> Step;
    const u4 *RF_WRITTEN_BEFORE x; // the first piece
    u32 from, pieces;         // its number, and those of the row: none beyond the tile's rows
    u32 to;                   // in a step
    __attribute__((device, always_inline)) NextStep(const Packed16 &a, const TileRows &rows, Packed16Held<ROWS, COUNT> &held) {
        u32 row = rf_thread() / OF;
        bool in = row < rows.m;
        u32 own = in ? rows.of_x(row) : 0;
        from = rf_thread() % OF, pieces = in ? 4 * a.row_blocks : 0;
        x = a.x + ((u64)own * (4 * a.row_blocks) + from);
        to = row * Step::STRIDE + from / 4 * Step::BLOCK + from % 4 * 8;
        if (from == 0 && in) held.y_rows[row] = rows.of_y(row), held.exponents[row] = a.exponents[own];
    }
#if !defined(__CUDA_ARCH__)
    u4 held[EACH];
#endif
    // From block `first` of each row on, if it is below `end`. What is beyond the rows and their ends is 0.
    __attribute__((device, always_inline)) void fetch(Step &step, u32 first, u32 end) {
        if (first < end) {
#pragma unroll
            for (u32 e = 0; e < EACH; ++e) {
                bool in = 4 * first + from + e * OF < pieces;
                const u4 *piece = x + (4 * first + e * OF);
#if defined(__CUDA_ARCH__)
                rf_copy_async(rf_shared_address(step.halves + to + e * (OF / 4 * Step::BLOCK)), piece, in ? 16 : 0);
#else
                (void)step;
                held[e] = u4{0, 0, 0, 0};
                if (in) held[e] = *piece;
#endif
            }
        }
#if defined(__CUDA_ARCH__)
        rf_copy_commit();
#endif
    }
    // The step that was fetched is there for all threads, and all have left the one before.
    __attribute__((device, always_inline)) void arrive(Step &step) const {
#if defined(__CUDA_ARCH__)
        (void)step;
        rf_copy_wait<RF_PACKED_STEPS - 2>();
#else
        rf_lds_barrier();
#pragma unroll
        for (u32 e = 0; e < EACH; ++e) *(u4 *)(step.halves + to + e * (OF / 4 * Step::BLOCK)) = held[e];
#endif
        rf_lds_barrier();
    }
};

// x of RF_TOGETHER products, for one half of 16 rows of a run in LDS: their blocks begin at `halves`, those of the first of the products at `product`.
#if defined(__CUDA_ARCH__)
#define RF_TOGETHER 2u
#else
#define RF_TOGETHER 1u
#endif
struct TileActivations {
    RfPart<RfHalf> x[RF_TOGETHER];
};
template <class Step> RF_DEVICE TileActivations rf_tile_activations(const RfHalf *halves, u32 s, u32 half, u32 product) {
#if defined(__CUDA_ARCH__)
    const RfHalf *own = halves + rf_lane() / 4 * Step::STRIDE + rf_block_of(s) * Step::BLOCK + 16 * half + 4 * product;
    u4 a = *(const u4 *)own, b = *(const u4 *)(own + 8 * Step::STRIDE);
    u4 first = {a.x, b.x, a.y, b.y}, second = {a.z, b.z, a.w, b.w};
    typedef RfPart<RfHalf>::Type Part;
    return {{{__builtin_bit_cast(Part, first)}, {__builtin_bit_cast(Part, second)}}};
#else
    (void)product;
    return {{rf_x_load(halves + rf_block_of(s) * Step::BLOCK + 16 * half, Step::STRIDE)}};
#endif
}

// A tile of y: `rows` of activations, and the rows of weights of the tile `tile_n` of a matrix that begins at row `w0`.
template <class W, u32 MT> RF_DEVICE void packed16_tile(const Packed16 &a, const TileRows &rows, u32 tile_n, u32 w0) {
    constexpr u32 ROWS = 16 * MT, COUNT = RF_PACKED_HELD / ROWS, NT = 2;
    typedef HeldStep<ROWS, COUNT> Step;
    typedef Packed16Held<ROWS, COUNT> Held;
#if defined(__CUDA_ARCH__)
    Held &held = *(Held *)packed16_lds;
#else
    RF_SHARED Held held;
#endif
    static_assert(RF_PACKED_WAVES * NT * ROWS * RF_PACKED_MEET * sizeof(float) <= sizeof(held.steps), "the sums of all waves fit");

    u32 wave = rf_uniform(rf_common(rf_thread() / RF_WAVE)), lane = rf_lane();
    u32 waves_n = a.waves_n, waves_k = RF_PACKED_WAVES / waves_n, wave_n = wave % waves_n, wave_k = wave / waves_n;
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
#pragma unroll
            for (u32 s = 0; s < RF_BLOCKS; ++s) row.fetch(s, begin + wave_k * RF_RUN);
        }
    if (!rows.listed) rf_grid_begin(); // the first weights are on their way

    RfTile sums[NT][MT] = {};
    NextStep<ROWS, COUNT> step(a, rows, held);
    constexpr u32 AHEAD = RF_PACKED_STEPS > 1 ? RF_PACKED_STEPS - 1 : 1;
#pragma unroll
    for (u32 i = 0; i < AHEAD; ++i) step.fetch(held.steps[i], begin + i * COUNT, end);
    u32 stage = 0, free = AHEAD % RF_PACKED_STEPS;
    u32 at = begin + wave_k * RF_RUN;
#pragma unroll 1
    for (u32 first = begin; first < end; first += COUNT) {
        step.arrive(held.steps[stage]);
        const RfHalf *halves = held.steps[stage].halves;
        step.fetch(held.steps[free], first + AHEAD * COUNT, end);
        stage = stage + 1 == RF_PACKED_STEPS ? 0 : stage + 1, free = free + 1 == RF_PACKED_STEPS ? 0 : free + 1;
        u32 stop = rf_min(first + COUNT, end);
#pragma unroll 1
        for (; at < stop; at += waves_k * RF_RUN) {
            const RfHalf *run = halves + (at - first) * Step::BLOCK;
#pragma unroll
            for (u32 s = 0; s < RF_BLOCKS; ++s) {
                if (RF_BLOCKS == RF_RUN && at + s >= end) break; // for the whole wave
                TileBlock w[NT][RF_TILE_B];
                float top[NT][RF_TILE_B];
#pragma unroll
                for (u32 t = 0; t < NT; ++t)
#pragma unroll
                    for (u32 b = 0; b < RF_TILE_B; ++b) {
                        w[t][b] = feeds[t][b].block(s, at);
                        feeds[t][b].fetch(s, at + waves_k * RF_RUN);
                        if constexpr (W::WIDE) top[t][b] = rf_top_scale(w[t][b]);
                    }
                RfTile wide[NT][MT] = {};
#pragma unroll
                for (u32 half = 0; half < 2; ++half)
#pragma unroll
                    for (u32 product = 0; product < RF_PRODUCTS; product += RF_TOGETHER) {
                        RfPart<RfHalf> y[NT][RF_TOGETHER];
#pragma unroll
                        for (u32 t = 0; t < NT; ++t)
#pragma unroll
                            for (u32 p = 0; p < RF_TOGETHER; ++p) y[t][p] = rf_tile_weights<W>(w[t], half, product + p);
#pragma unroll
                        for (u32 j = 0; j < MT; ++j) {
                            TileActivations x = rf_tile_activations<Step>(run + 16 * j * Step::STRIDE, s, half, product);
#pragma unroll
                            for (u32 t = 0; t < NT; ++t)
#pragma unroll
                                for (u32 p = 0; p < RF_TOGETHER; ++p) rf_tile_multiply(W::WIDE ? wide[t][j] : sums[t][j], x.x[p], y[t][p]);
                        }
                    }
                if constexpr (W::WIDE) {
#pragma unroll
                    for (u32 t = 0; t < NT; ++t)
#pragma unroll
                        for (u32 j = 0; j < MT; ++j)
#pragma unroll
                            for (u32 e = 0; e < RF_TILE; ++e) sums[t][j][e] = rf_fma(top[t][rf_tile_which(e)], wide[t][j][e], sums[t][j][e]);
                }
            }
        }
    }

    // The waves of k meet in LDS. Then a thread has four neighbours of a row of y at a time.
    float *meet = (float *)held.steps;
    rf_lds_barrier();
#pragma unroll
    for (u32 t = 0; t < NT; ++t)
#pragma unroll
        for (u32 j = 0; j < MT; ++j)
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e)
                meet[((wave * NT + t) * ROWS + 16 * j + rf_tile_a(lane, e)) * RF_PACKED_MEET + rf_tile_b(lane, rf_tile_which(e))] = sums[t][j][e];
    rf_lds_barrier();
    u32 bits = (u32)__builtin_ctz(waves_n), t = rf_thread() / 4 % NT, column = rf_thread() % 4 * 4;
#pragma unroll 1
    for (u32 f = rf_thread() / (4 * NT); f < ROWS * waves_n; f += RF_PACKED_THREADS / (4 * NT)) {
        u32 own = f % waves_n, m = f >> bits, row = ((tile_n * waves_n + own) * NT + t) * 16 + column;
        if (m >= rows.m || row >= a.n) continue;
        f4 sum = rf_splat(0.0f);
#pragma unroll 1
        for (u32 k = own; k < RF_PACKED_WAVES; k += waves_n) sum += *(const f4_lds *)(meet + ((k * NT + t) * ROWS + m) * RF_PACKED_MEET + column);
        i32 exponent = held.exponents[m];
        u32 count = rf_min(4, a.n - row);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) sum[e] = gemm16_scaled(sum[e], exponent, rf_scales_weights<W>() ? -RF_LIFT : 0);
        if (a.bias) sum += rf_load4(a.bias + row, count);
        rf_store4(a.y + (((u64)rf_block_y() * a.x_rows + held.y_rows[m]) * a.n + row), sum, count);
    }
}

// y = x w^T (+ bias), of each of three matrices, or y[pair, :] = w[expert of the pair] x[pair / share, :] and NaN of pairs whose id is no expert. grid = (tiles of n times
// those of m, parts of k).
template <class W, u32 MT> RF_DEVICE void packed16(Packed16 a, const Another16 &second, const Another16 &third, const TileList &list) {
    u32 tiles_m = list.table ? list.tiles : (a.x_rows + 16 * MT - 1) / (16 * MT), tile_m = rf_block_x() % tiles_m, tile_n = rf_block_x() / tiles_m;
    TileRows rows = {list.order, false, tile_m * 16 * MT, a.x_rows - tile_m * 16 * MT, list.share};
    u32 w0 = 0;
    if (tile_n >= third.first) {
        third.instead(a, tile_n);
    } else if (tile_n >= second.first) {
        second.instead(a, tile_n);
    }
    if (list.table) {
        rf_grid_begin();
        ExpertTile tile = list.table[tile_m];
        u32 expert = rf_uniform(tile.expert);
        rows.listed = true, rows.first = rf_uniform(tile.begin), rows.m = rf_uniform(tile.count);
        if (expert >= list.experts) {
            u32 width = 32 * a.waves_n;
            for (u32 f = rf_thread(); f < rows.m * width; f += RF_PACKED_THREADS) {
                u32 row = tile_n * width + f % width;
                if (row < a.n) a.y[(u64)rows.of_y(f / width) * a.n + row] = __builtin_nanf("");
            }
            return;
        }
        if (rows.m == 0) return;
        w0 = expert * a.n;
    }
    packed16_tile<W, MT>(a, rows, tile_n, w0);
}

#define RF_PACKED16_MT(name, Type, MT)                                                                                                  \
    RF_KERNEL(RF_PACKED_THREADS)                                                                                                        \
    packed16_##name##_t##MT(const u8 *__restrict__ w, const _Float16 *RF_WRITTEN_BEFORE x, const i32 *RF_WRITTEN_BEFORE exponents,       \
                            const float *bias, float *y, const u8 *w1, const float *bias1, float *y1, const u8 *w2, const float *bias2,  \
                            float *y2, const u32 *table, const u32 *order, u32 w_rows, u32 x_rows, u32 n, u32 n1, u32 n2, u32 second,    \
                            u32 third, u32 row_blocks, u32 part_blocks, u32 waves_n, u32 tiles, u32 experts, u32 share) {                \
        packed16<Type, MT>(Packed16{w, (const u4 *)x, exponents, bias, y, w_rows, x_rows, n, row_blocks, part_blocks, waves_n},          \
                           Another16{w1, bias1, y1, n1, second}, Another16{w2, bias2, y2, n2, third},                                   \
                           TileList{(const ExpertTile *)table, order, tiles, experts, share});                                          \
    }
#define RF_PACKED16(name, Type)                                                                                                         \
    RF_PACKED16_MT(name, Type, 1)                                                                                                       \
    RF_PACKED16_MT(name, Type, 2)
