// y = activation(alpha a b^T + bias) for 16-bit floats on the matrix unit, with f32 sums: include/tile.h, include/gemm16.h.
//
// A block of four waves makes 128 x 64 of y, each wave 64 x 32: eight tiles of 16 x 16. 32 of k at a time pass through LDS, whose rows of
// 80 bytes have no bank conflicts; there are two buffers, and the next step's loads are in flight while the current one is used.
// grid = (tiles, 1, batches).
#include "include/gemm16.h"
#include "include/tile.h"

#define BM 128u
#define BN 64u
#define BK 32u
#define ROW (BK + 8) // of LDS, in elements
#define THREADS (4 * RF_WAVE)

typedef u32 Chunk __attribute__((ext_vector_type(4))); // 16 bytes: 8 elements

// The row of a thread's piece of 16 bytes. Four threads have a row. Eight have rows r and r + 4, whose pieces in LDS lie in different banks.
RF_DEVICE u32 row_of(u32 slot) { return slot / 32 * 8 + slot / 8 % 4 + slot / 4 % 2 * 4; }

// A thread's share of the next step of a tile: rows repeat the last one beyond the edge, k beyond the edge is 0.
template <class T, u32 ROWS> struct Next {
    static constexpr u32 COUNT = ROWS * 4 / THREADS;
    u32 offset[COUNT]; // in bytes, from the tile's first row: the launcher has checked that 128 rows have no more than 2^32
    Chunk chunk[COUNT];
    __attribute__((device, always_inline)) void begin(u32 stride, u32 rows) {
#pragma unroll
        for (u32 i = 0; i < COUNT; ++i) {
            u32 slot = rf_thread() + i * THREADS;
            offset[i] = rf_min(row_of(slot), rows - 1) * stride * 2 + slot % 4 * 16;
        }
    }
    __attribute__((device, always_inline)) void fetch(const T *tile, u32 k0, u32 k) {
        const unsigned char *from = (const unsigned char *)(tile + k0);
        if (k0 + BK <= k) {
#pragma unroll
            for (u32 i = 0; i < COUNT; ++i) chunk[i] = *(const Chunk *)(from + rf_opaque(offset[i])); // an address of two parts, not a sum
        } else {
            // A piece that does not exist is the row's first, cleared: a branch of some threads alone would cost every step more.
            u32 piece = rf_thread() % 4 * 16;
            bool in = rf_opaque(k0 + piece / 2) < k;
#pragma unroll
            for (u32 i = 0; i < COUNT; ++i) {
                Chunk v = *(const Chunk *)((const unsigned char *)(tile + (in ? k0 : 0)) + (in ? offset[i] : offset[i] - piece));
                chunk[i] = in ? v : Chunk{0, 0, 0, 0};
            }
        }
    }
    __attribute__((device, always_inline)) void store(T *tile) const {
#pragma unroll
        for (u32 i = 0; i < COUNT; ++i) {
            u32 slot = rf_thread() + i * THREADS;
            *(Chunk *)(tile + row_of(slot) * ROW + slot % 4 * 8) = chunk[i];
        }
    }
};

template <class T, class TO>
RF_DEVICE void matmul16(const T *__restrict__ a, const T *__restrict__ b, const float *__restrict__ bias, void *__restrict__ y,
                        Gemm16Exponents exponents, const Gemm16 &p) {
    constexpr u32 STAGE = (BM + BN) * ROW, Y_ROW = BN + 4;
    static_assert(64 * Y_ROW * 4 <= 2 * STAGE * 2, "half a tile of y fits");
    RF_SHARED T tiles[2 * STAGE];

    u32 tile_m, tile_n;
    gemm16_tile<8>(rf_block_x(), (p.m + BM - 1) / BM, (p.n + BN - 1) / BN, tile_m, tile_n);
    u32 batch = rf_block_z(), wave = rf_thread() / RF_WAVE, lane = rf_lane();
    u32 wave_m = wave / 2 * 64, wave_n = wave % 2 * 32;
    Next<T, BM> next_a;
    Next<T, BN> next_b;
    next_a.begin((u32)p.a_row, p.m - tile_m * BM);
    next_b.begin((u32)p.b_row, p.n - tile_n * BN);
    a += batch * p.a_batch + tile_m * BM * p.a_row;
    b += batch * p.b_batch + tile_n * BN * p.b_row;

    RfTile sums[4][2] = {};
    next_a.fetch(a, 0, p.k);
    next_b.fetch(b, 0, p.k);
    u32 stage = 0;
#pragma unroll 1
    for (u32 k0 = 0; k0 < p.k; k0 += BK, stage = STAGE - stage) {
        T *tile_a = tiles + stage, *tile_b = tile_a + BM * ROW;
        next_a.store(tile_a);
        next_b.store(tile_b);
        // The barrier also says that the buffer of the step after this one is free: every wave has left the step before.
        rf_lds_barrier();
        if (k0 + BK < p.k) {
            next_a.fetch(a, k0 + BK, p.k);
            next_b.fetch(b, k0 + BK, p.k);
        }
#pragma unroll RF_TILE_UNROLL(2)
        for (u32 k = 0; k < BK; k += 16) {
            RfPart<T> xs[2];
#pragma unroll
            for (u32 j = 0; j < 2; ++j) xs[j] = rf_x_load(tile_b + (wave_n + 16 * j) * ROW + k, ROW);
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                RfPart<T> ys = rf_y_load(tile_a + (wave_m + 16 * i) * ROW + k, ROW);
#pragma unroll
                for (u32 j = 0; j < 2; ++j) rf_tile_multiply(sums[i][j], xs[j], ys);
            }
        }
    }

    // Through LDS, so that neighbours in a row are stored together: 64 rows at a time. What becomes of the sums is code for one four, not for all
    // of a thread: so often it would be 60 KB, and instruction caches have 32.
    float *half = (float *)tiles;
#pragma unroll 1
    for (u32 part = 0; part < 2; ++part) {
        rf_lds_barrier();
        if (wave_m == part * 64) {
#pragma unroll
            for (u32 i = 0; i < 4; ++i)
#pragma unroll
                for (u32 j = 0; j < 2; ++j)
#pragma unroll
                    for (u32 e = 0; e < RF_TILE; ++e)
                        half[(16 * i + rf_tile_b(lane, rf_tile_which(e))) * Y_ROW + wave_n + 16 * j + rf_tile_a(lane, e)] = sums[i][j][e];
        }
        rf_lds_barrier();
#pragma unroll 1
        for (u32 slot = rf_thread(); slot < 64 * BN / 4; slot += THREADS) {
            u32 row = slot / (BN / 4), column = slot % (BN / 4) * 4;
            u32 m = tile_m * BM + part * 64 + row, n = tile_n * BN + column;
            f4_lds v = *(f4_lds *)(half + row * Y_ROW + column);
            float four[4] = {v.x, v.y, v.z, v.w};
            if (m < p.m && n < p.n) gemm16_store<TO>(four, y, bias, exponents, p, batch, m, n);
        }
    }
}

#define RF_MATMUL16(name, T, TO)                                                                                                       \
    RF_KERNEL(THREADS) matmul16_##name(const void *a, const void *b, const float *bias, const i32 *a_exponents,                        \
                                       const i32 *b_exponents, void *y, Gemm16 p) {                                                    \
        matmul16<T, TO>((const T *)a, (const T *)b, bias, y, Gemm16Exponents{a_exponents, b_exponents}, p);                            \
    }
RF_MATMUL16(f16, RfHalf, ToF16)
RF_MATMUL16(f16_f32, RfHalf, ToF32)
RF_MATMUL16(bf16, RfBfloat, ToBf16)
RF_MATMUL16(bf16_f32, RfBfloat, ToF32)
