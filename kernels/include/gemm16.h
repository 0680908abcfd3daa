// Products of matrices of 16-bit floats: operands, order of the tiles and what becomes of the sums, for every main loop.
//
// y[z] = activation(alpha a[z] b[z]^T + bias), z below the batches: a [m, k], b [n, k], y [m, n], bias [n] in f32 or none. Columns are adjacent.
// Rows of a and b begin at multiples of 16 bytes and k is a multiple of 8: the launcher has checked it. Rows of a and of b may have a power of
// two each (half_rows.h).
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

// Exponents of the rows of a, and of b or none, or none at all.
struct Gemm16Exponents {
    const i32 *a, *b;
};

// x 2^(a + b), for exponents of -126 to 127 each. Two factors: their product may be beyond f32 where the result is not.
RF_DEVICE float gemm16_scaled(float x, i32 a, i32 b) {
    i32 e = a + b, half = e >> 1;
    return x * __builtin_bit_cast(float, (u32)(half + 127) << 23) * __builtin_bit_cast(float, (u32)(e - half + 127) << 23);
}

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
RF_DEVICE void gemm16_store(const float (&sums)[COUNT], void *y, const float *bias, Gemm16Exponents exponents, const Gemm16 &p, u32 batch,
                              u32 m, u32 n) {
    typedef typename TO::Type Out;
    typedef Out Wide __attribute__((ext_vector_type(COUNT), aligned(sizeof(Out) * COUNT)));
    Out *to = (Out *)y + batch * p.y_batch + m * p.y_row + n;
    Wide out;
    i32 own = exponents.a ? exponents.a[m] : 0;
#pragma unroll
    for (u32 i = 0; i < COUNT; ++i) {
        float x = sums[i] * p.alpha;
        if (exponents.a) x = gemm16_scaled(x, own, exponents.b && n + i < p.n ? exponents.b[n + i] : 0);
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
