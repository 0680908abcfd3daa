// Rows of f16 with a power of two each (include/half_rows.h), of values in f32 and of weights of every type, packed or in ggml's order.
//
// 32 lanes have a row of up to 1024 columns, a block has a longer one. grid = ceil(count / 8), or count.
#include "include/half_rows.h"
#include "include/packed_fours.h"

template <class Row> RF_DEVICE void half_rows(_Float16 *to, i32 *exponents, u32 count, u32 k, u64 stride, Row row) {
    if (k <= 1024) {
        u32 r = Team32::row();
        if (r < count) rf_half_row<Team32>(k, to + r * stride, exponents + r, row(r));
    } else {
        u32 r = rf_block_x();
        rf_half_row<Team256>(k, to + r * stride, exponents + r, row(r));
    }
}

// Row r of ggml's order.
template <class W> struct RowOf {
    const u8 *row;
    u32 k;
    __attribute__((device, always_inline)) HalfRowEight operator()(u32 c) const {
        if constexpr (W::block == 1) {
            if (c + 8 <= k) return {W::four(row, c / 4), W::four(row, c / 4 + 1)};
            HalfRowEight v = {rf_splat(0.0f), rf_splat(0.0f)};
#pragma unroll
            for (u32 e = 0; e < 7; ++e)
                if (c + e < k) (e < 4 ? v.low : v.high)[e % 4] = W::one(row, c + e);
            return v;
        } else {
            const u8 *block = row + (u64)(c / W::block) * W::bytes;
            u32 i = c % W::block / 4;
            return {W::four(block, i), W::four(block, i + 1)};
        }
    }
};
// A row of a packed matrix, from its first block on.
template <class W> struct PackedRowOf {
    const u8 *w;
    u64 blocks;
    u32 first;
    __attribute__((device, always_inline)) HalfRowEight operator()(u32 c) const {
        u32 i = first + c / RF_Q8_BLOCK, f = c % RF_Q8_BLOCK / 4;
        return {W::four(w, blocks, i, f), W::four(w, blocks, i, f + 1)};
    }
};

#define RF_HALF_ROWS(name, W)                                                                                                      \
    RF_KERNEL(RF_ROW_BLOCK) half_rows_##name(const u8 *w, _Float16 *to, i32 *exponents, u32 count, u32 k, u64 stride) {            \
        half_rows(to, exponents, count, k, stride,                                                                                 \
                  [=](u32 r) __attribute__((always_inline)) { return RowOf<W>{w + r * (u64)(k / W::block) * W::bytes, k}; });      \
    }
#define RF_HALF_ROWS_PACKED(name, W)                                                                                               \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    half_rows_packed_##name(const u8 *w, _Float16 *to, i32 *exponents, u32 first, u32 count, u32 n, u32 k, u64 stride) {           \
        u32 row_blocks = k / RF_Q8_BLOCK;                                                                                          \
        half_rows(to, exponents, count, k, stride, [=](u32 r) __attribute__((always_inline)) {                                     \
            return PackedRowOf<W>{w, (u64)n * row_blocks, (first + r) * row_blocks};                                               \
        });                                                                                                                        \
    }

RF_HALF_ROWS(f32, F32)
RF_HALF_ROWS(f16, F16)
RF_HALF_ROWS(bf16, Bf16)
RF_HALF_ROWS(q4_0, Q4_0)
RF_HALF_ROWS(q4_1, Q4_1)
RF_HALF_ROWS(q5_0, Q5_0)
RF_HALF_ROWS(q5_1, Q5_1)
RF_HALF_ROWS(q8_0, Q8_0)
RF_HALF_ROWS(q2_k, Q2K)
RF_HALF_ROWS(q3_k, Q3K)
RF_HALF_ROWS(q4_k, Q4K)
RF_HALF_ROWS(q5_k, Q5K)
RF_HALF_ROWS(q6_k, Q6K)
RF_HALF_ROWS(iq4_nl, Iq4Nl)
RF_HALF_ROWS(iq4_xs, Iq4Xs)
RF_HALF_ROWS(mxfp4, Mxfp4)
RF_HALF_ROWS_PACKED(q4_0, FoursQ4_0)
RF_HALF_ROWS_PACKED(q4_1, FoursQ4_1)
RF_HALF_ROWS_PACKED(q5_0, FoursQ5_0)
RF_HALF_ROWS_PACKED(q5_1, FoursQ5_1)
RF_HALF_ROWS_PACKED(q8_0, FoursQ8_0)
RF_HALF_ROWS_PACKED(q4_k, FoursQ4K)
RF_HALF_ROWS_PACKED(q5_k, FoursQ5K)
RF_HALF_ROWS_PACKED(q6_k, FoursQ6K)
RF_HALF_ROWS_PACKED(q2_k, FoursQ2K)
RF_HALF_ROWS_PACKED(q3_k, FoursQ3K)
RF_HALF_ROWS_PACKED(iq4_nl, FoursIq4Nl)
RF_HALF_ROWS_PACKED(iq4_xs, FoursIq4Xs)
RF_HALF_ROWS_PACKED(mxfp4, FoursMxfp4)
