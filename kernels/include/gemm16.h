// Products of matrices of 16-bit floats: operands, order of the tiles and what becomes of the sums, for every main loop.
//
// y[z] = activation(alpha a[z] b[z]^T + bias), z below the batches: a [m, k], b [n, k], y [m, n], bias [n] in f32 or none. Columns are adjacent.
// Rows of a and b begin at multiples of 16 bytes and k is a multiple of 8: the launcher has checked it.
#pragma once
#include "floats.h"
#include "functions.h"

struct Gemm16 {
    u32 m, n, k;
    u32 activation; // 0 none, 1 SiLU, 2 GELU (tanh), 3 GELU (erf), 4 ReLU
    u64 a_row, b_row, y_row;
    u64 a_batch, b_batch, y_batch;
    float alpha;
    u32 none;
};

// The tile of a block. Neighbouring blocks, which run together, share rows and columns: GROUP rows of tiles at a time.
template <u32 GROUP> RF_DEVICE void gemm16_tile(u32 block, u32 tiles_m, u32 tiles_n, u32 &tile_m, u32 &tile_n) {
    u32 group = block / (GROUP * tiles_n), in = block % (GROUP * tiles_n);
    u32 rows = rf_min(GROUP, tiles_m - group * GROUP);
    tile_m = group * GROUP + in % rows;
    tile_n = in / rows;
}

RF_DEVICE float gemm16_activate(u32 activation, float x) {
    switch (activation) {
    case 1: return rf_silu(x);
    case 2: return rf_gelu_tanh(x);
    case 3: return rf_gelu_erf(x);
    case 4: return x < 0.0f ? 0.0f : x;
    default: return x;
    }
}

// `count` neighbours of a row of y, from column n on.
template <class TO, u32 COUNT>
RF_DEVICE void gemm16_store(const float (&sums)[COUNT], void *y, const float *bias, const Gemm16 &p, u32 batch, u32 m, u32 n) {
    typedef typename TO::Type Out;
    typedef Out Wide __attribute__((ext_vector_type(COUNT), aligned(sizeof(Out) * COUNT)));
    Out *to = (Out *)y + batch * p.y_batch + m * p.y_row + n;
    Wide out;
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
        float x = sums[i] * p.alpha;
        if (bias && n + i < p.n) x += bias[n + i];
        out[i] = TO::of(gemm16_activate(p.activation, x));
    }
    if (n + COUNT <= p.n && ((u64)to & (sizeof(Wide) - 1)) == 0) {
        *(Wide *)to = out;
    } else {
#pragma unroll
        for (u32 i = 0; i < COUNT; ++i)
            if (n + i < p.n) to[i] = out[i];
    }
}
