// The products of matmul16.hip on Hopper's tensor cores: include/gemm16.h, include/wgmma.h.
//
// A block of two warpgroups makes 128 x 256 of y, each 64 x 256. 64 of k at a time pass through one of four buffers in shared memory, filled two
// steps ahead: a step's products run while the next one's operands arrive and the barrier waits. 197,632 bytes of dynamic shared memory.
// grid = (tiles, 1, batches).
#include "include/copy_async.h"
#include "include/gemm16.h"
#include "include/wgmma.h"

#define BM 128u
#define BN 256u
#define BK 64u
#define STAGES 4u
#define STAGE ((BM + BN) * BK * 2)
// Floats of a row of sums: rows begin eight banks apart.
#define TILE_ROW (BN + 8)

extern __attribute__((shared)) __attribute__((aligned(1024))) unsigned char matmul16_lds[];

template <bool BF16, class TO>
RF_DEVICE void matmul16_hopper(const unsigned char *__restrict__ a, const unsigned char *__restrict__ b, const float *__restrict__ bias,
                               void *__restrict__ y, Gemm16Exponents exponents, const Gemm16 &p) {
    u32 tid = rf_thread(), group = tid / 128, warp = tid / 32 % 4, lane = tid % 32, batch = rf_block_z();
    u32 base = (rf_shared_address(matmul16_lds) + 1023) & ~1023u;
    u32 tile_m, tile_n;
    gemm16_tile<16>(rf_block_x(), (p.m + BM - 1) / BM, (p.n + BN - 1) / BN, tile_m, tile_n);
    u32 row0 = tile_m * BM, column0 = tile_n * BN;

    // A thread copies one piece of 16 bytes of every 32nd row. Rows beyond the edge repeat the last one.
    u32 piece = tid % 8, row = tid / 8;
    const unsigned char *from_a[BM / 32], *from_b[BN / 32];
#pragma unroll
    for (u32 i = 0; i < BM / 32; ++i) from_a[i] = a + (batch * p.a_batch + rf_min(row0 + row + 32 * i, p.m - 1) * p.a_row + piece * 8) * 2;
#pragma unroll
    for (u32 i = 0; i < BN / 32; ++i) from_b[i] = b + (batch * p.b_batch + rf_min(column0 + row + 32 * i, p.n - 1) * p.b_row + piece * 8) * 2;
    u32 to = base + row * 128 + ((piece ^ (row & 7)) << 4);
    u32 steps = (p.k + BK - 1) / BK;
    auto copy = [&](u32 step) __attribute__((always_inline)) {
        if (step < steps) {
            u32 stage = to + step % STAGES * STAGE;
            bool in = step * BK + piece * 8 < p.k;
            u64 at = in ? (u64)step * BK * 2 : 0;
#pragma unroll
            for (u32 i = 0; i < BM / 32; ++i) rf_copy_async(stage + i * 4096, from_a[i] + at, in ? 16 : 0);
#pragma unroll
            for (u32 i = 0; i < BN / 32; ++i) rf_copy_async(stage + BM * 128 + i * 4096, from_b[i] + at, in ? 16 : 0);
        }
        rf_copy_commit();
    };

    float sums[BN / 2];
#pragma unroll
    for (u32 i = 0; i < BN / 2; ++i) sums[i] = 0.0f;
#pragma unroll
    for (u32 step = 0; step < STAGES - 2; ++step) copy(step);
#pragma unroll 1
    for (u32 step = 0; step < steps; ++step) {
        rf_copy_wait<STAGES - 3>();
        rf_fence_async();
        rf_barrier(); // this step is there, and both groups have finished the products of two steps ago, whose buffer is filled next
        u32 stage = base + step % STAGES * STAGE;
        u64 tile_a = rf_wgmma_tile(stage + group * 64 * 128, 16, 1024), tile_b = rf_wgmma_tile(stage + BM * 128, 16, 1024);
        rf_wgmma_hold(sums);
        rf_wgmma_fence();
#pragma unroll
        for (u32 k = 0; k < BK / 16; ++k) rf_wgmma<BF16>(sums, tile_a + k * 2, tile_b + k * 2, true);
        rf_wgmma_commit();
        copy(step + STAGES - 2);
        rf_wgmma_wait<1>();
    }
    rf_wgmma_wait<0>();
    rf_wgmma_hold(sums);
    // Through shared memory, four neighbours to a thread: what becomes of the sums is code for one four, not for all 128 sums of a thread, which the
    // instruction caches would not hold.
    rf_barrier(); // both groups have finished the last products
    float *tile = (float *)(matmul16_lds + (base - rf_shared_address(matmul16_lds)));
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        float *to = tile + (group * 64 + warp * 16 + lane / 4 + 8 * half) * TILE_ROW + 2 * (lane % 4);
#pragma unroll
        for (u32 i = 0; i < BN / 8; ++i) {
            to[8 * i] = sums[4 * i + 2 * half];
            to[8 * i + 1] = sums[4 * i + 2 * half + 1];
        }
    }
    rf_barrier();
#pragma unroll 1
    for (u32 at = tid; at < BM * BN / 4; at += 256) {
        u32 row = at / (BN / 4), column = at % (BN / 4) * 4, m = row0 + row, n = column0 + column;
        if (m >= p.m || n >= p.n) continue;
        f4_lds four = *(const f4_lds *)(tile + row * TILE_ROW + column);
        float sums4[4] = {four.x, four.y, four.z, four.w};
        gemm16_store<TO>(sums4, y, bias, exponents, p, batch, m, n);
    }
}

#define RF_MATMUL16_HOPPER(name, BF16, TO)                                                                                             \
    extern "C" __attribute__((global, launch_bounds(256, 1))) void matmul16_hopper_##name(                                             \
        const void *a, const void *b, const float *bias, const i32 *a_exponents, const i32 *b_exponents, void *y, Gemm16 p) {          \
        matmul16_hopper<BF16, TO>((const unsigned char *)a, (const unsigned char *)b, bias, y,                                         \
                                  Gemm16Exponents{a_exponents, b_exponents}, p);                                                       \
    }
RF_MATMUL16_HOPPER(f16, false, ToF16)
RF_MATMUL16_HOPPER(f16_f32, false, ToF32)
RF_MATMUL16_HOPPER(bf16, true, ToBf16)
RF_MATMUL16_HOPPER(bf16_f32, true, ToF32)
