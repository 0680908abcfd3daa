// Embedding lookup: y[r, :] = table[ids[r], :]. An id that is not below table_rows reads nothing and gives a row of NaN.
#include "include/team.h"

RF_KERNEL(RF_ROW_BLOCK)
get_rows(const float *__restrict__ table, const u32 *__restrict__ ids, float *__restrict__ y, u32 rows, u32 cols, u32 table_rows) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 id = ids[t.row];
    float *out = y + (u64)t.row * cols;
    if (id < table_rows) {
        const float *in = table + (u64)id * cols;
        for (u32 c = t.begin; c < t.end; c += 128) {
            u32 count = rf_left4(c, t.end);
            rf_store4(out + c, rf_load4(in + c, count), count);
        }
    } else {
        for (u32 c = t.begin; c < t.end; c += 128) rf_store4(out + c, rf_splat(__builtin_nanf("")), rf_left4(c, t.end));
    }
}
