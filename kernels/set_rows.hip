// Rows written where indices say, in matrices of their own: row ids[l, i] of matrix m of dst becomes row i of matrix m of src, where l
// is the list of m. No two rows of one matrix may have the same index. An index out of range is a fault and writes nothing.
#include "include/cache_rows.h"
#include "include/fault.h"

// Matrices [.., heads] and lists of indices [outer, inner], which divide them and repeat. An index is `words` words (1 or 2), of which
// the first counts and the others must be 0.
struct Lists {
    u32 heads, outer, inner, words;
};

// src [matrices, per, cols], rows = matrices * per; dst [matrices, dst_rows, cols].
template <class To>
RF_DEVICE void set_rows(const float *src, const u32 *ids, u8 *dst, u32 rows, u32 cols, u32 per, u32 dst_rows, Lists l,
                        u64 *fault, u32 tag) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 matrix = t.row / per;
    u32 at = ((matrix / l.heads % l.outer) * l.inner + matrix % l.heads % l.inner) * per + t.row % per;
    u32 id = ids[(u64)at * l.words];
    if (l.words == 2 && ids[(u64)at * 2 + 1] != 0) id = 0xffffffffu;
    if (id >= dst_rows) {
        if (t.begin == 0) rf_fault(fault, tag, at, id);
        return;
    }
    rf_put_row<To>(src + (u64)t.row * cols, dst + ((u64)matrix * dst_rows + id) * rf_stored_bytes<To>(cols), t);
}

#define RF_SET_ROWS(name, To)                                                                                                      \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    set_rows_##name(const float *src, const u32 *ids, u8 *dst, u32 rows, u32 cols, u32 per, u32 dst_rows, Lists lists,             \
                    u64 *fault, u32 tag) {                                                                                         \
        set_rows<To>(src, ids, dst, rows, cols, per, dst_rows, lists, fault, tag);                                                 \
    }

RF_SET_ROWS(f32, ToF32)
RF_SET_ROWS(f16, ToF16)
RF_SET_ROWS(bf16, ToBf16)
RF_SET_ROWS(q8_0, ToQ8_0)
