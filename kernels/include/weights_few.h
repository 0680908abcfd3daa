// Products with weights of one type, and rows of them, by three kernels: RF_WEIGHTS_FEW(name, Type) for a type of quant_few.h.
#pragma once
#include "quant_few.h"
#include "weights.h"

// As matvec_id (weights.h), with a bias; and one product where `ids` is null, with the first of the matrices.
template <class W>
RF_DEVICE void matvec_few(const u8 *__restrict__ w, const float *__restrict__ x, const float *__restrict__ bias, const u32 *__restrict__ ids,
                          float *__restrict__ y, u32 n, u32 k, u32 experts, u32 share, u64 *__restrict__ fault, u32 tag) {
    constexpr u32 ROWS = 4;
    u32 pair = rf_block_x(), id = ids ? ids[pair] : 0;
    u32 row0 = (rf_block_y() * RF_ROWS_PER_BLOCK + rf_thread() / 32) * ROWS;
    if (id >= experts) {
        if (row0 == 0 && rf_thread() == 0) rf_fault(fault, tag, pair, id);
        u32 row = row0 + rf_thread() % 32;
        if (rf_thread() % 32 < ROWS && row < n) y[(u64)pair * n + row] = __builtin_nanf("");
        return;
    }
    matvec<W, 1, ROWS>(w + (u64)id * n * row_bytes<W>(k), x + (u64)(pair / share) * k, bias, y + (u64)pair * n, 1, n, k, row0);
}

#define RF_WEIGHTS_FEW(name, Type)                                                                                                 \
    RF_KERNEL(RF_ROW_BLOCK) \
    matvec_##name(const u8 *w, const float *x, const float *bias, const u32 *ids, float *y, u32 n, u32 k, u32 experts, u32 share,  \
                  u64 *fault, u32 tag) {                                                                                           \
        matvec_few<Type>(w, x, bias, ids, y, n, k, experts, share, fault, tag);                                                    \
    }                                                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)  \
    matvec_##name##_m8(const u8 *w, const float *x, const float *bias, float *y, u32 m, u32 n, u32 k) {                            \
        u32 first = rf_block_y() * 8;                                                                                              \
        matvec<Type, 8, 2>(w, x + (u64)first * k, bias, y + (u64)first * n, m - first, n, k, Team32::row() * 2);                   \
    }                                                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    get_rows_##name(const u8 *table, const u32 *ids, float *y, u32 rows, u32 cols, u32 table_rows, u32 per_list, u64 *fault,       \
                    u32 tag) {                                                                                                     \
        get_rows<Type>(table, ids, y, rows, cols, table_rows, per_list, fault, tag);                                               \
    }
