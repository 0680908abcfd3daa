// Rows of f16 with a power of two each, of weights of one type of quant_few.h in ggml's order. Less code than half_rows.hip has: a block to a row of any
// length, which is read and decoded twice.
#include "include/half_rows.h"
#include "include/quant_few.h"
#include "include/variant.h"

template <class W> RF_DEVICE void half_row_few(const u8 *__restrict__ row, _Float16 *__restrict__ to, i32 *__restrict__ exponent, u32 k) {
    RowOf<W> eight{row, k};
    float largest = 0.0f;
    for (u32 c = Team256::lane() * 8; c < k; c += 2048) largest = rf_max(largest, HalfRowEight::largest(eight(c)));
    i32 power = rf_half_exponent(Team256::max(largest));
    float factor = rf_power_of_two(-power);
    if (Team256::lane() == 0) *exponent = power;
    for (u32 c = Team256::lane() * 8; c < k; c += 2048) *(h8 *)(to + c) = HalfRowEight::scaled(eight(c), factor);
}

#define RF_HALF_ROWS_FEW(name, W)                                                                                                  \
    RF_KERNEL(RF_ROW_BLOCK) half_rows_##name(const u8 *w, _Float16 *to, i32 *exponents, u32 count, u32 k, u64 stride) {            \
        u32 r = rf_block_x();                                                                                                      \
        if (r < count) half_row_few<W>(w + r * (u64)(k / W::block) * W::bytes, to + r * stride, exponents + r, k);                 \
    }

RF_CALL(RF_HALF_ROWS_FEW, RF_NAME, RF_TYPE)
