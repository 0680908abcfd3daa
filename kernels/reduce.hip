// Sums of rows, running sums along rows, and rows of another matrix added.
#include "include/fault.h"
#include "include/team.h"

// y[r] = factor * the sum of x[r * cols ..], cols elements or as many as there are of all n.
template <class Team> RF_DEVICE void sum_rows(const float *x, float *y, u64 n, u32 rows, u32 cols, float factor) {
    u32 row = Team::row();
    if (row >= rows) return;
    u64 first = (u64)row * cols;
    u32 end = n - first < cols ? (u32)(n - first) : cols;
    float sum = 0.0f;
    for (u32 c = Team::lane(); c < end; c += Team::width) sum += x[first + c];
    sum = Team::sum(sum);
    if (Team::lane() == 0) y[row] = sum * factor;
}
RF_KERNEL(RF_ROW_BLOCK) sum_rows_rows(const float *x, float *y, u64 n, u32 rows, u32 cols, float factor) {
    sum_rows<Team32>(x, y, n, rows, cols, factor);
}
RF_KERNEL(RF_ROW_BLOCK) sum_rows_block(const float *x, float *y, u64 n, u32 rows, u32 cols, float factor) {
    sum_rows<Team256>(x, y, n, rows, cols, factor);
}

// y[r, c] = x[r, 0] + .. + x[r, c]. y may be x. A block to a row: 256 columns at a time, each after the sum of those before
// (Hillis and Steele, "Data Parallel Algorithms", 1986). grid = rows.
RF_KERNEL(RF_ROW_BLOCK) cumsum(const float *x, float *y, u32 rows, u32 cols) {
    RF_SHARED float sums[2][RF_ROW_BLOCK];
    u32 row = rf_block_x(), tid = rf_thread();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    float *out = y + (u64)row * cols;
    float before = 0.0f;
    for (u32 first = 0; first < cols; first += RF_ROW_BLOCK) {
        u32 c = first + tid, now = 0;
        float sum = c < cols ? in[c] : 0.0f;
        for (u32 distance = 1; distance < RF_ROW_BLOCK; distance *= 2) {
            sums[now][tid] = sum;
            rf_barrier();
            if (tid >= distance) sum += sums[now][tid - distance];
            now = 1 - now;
        }
        sums[0][tid] = sum; // its last readers were before a barrier
        rf_barrier();
        if (c < cols) out[c] = before + sum;
        before += sums[0][RF_ROW_BLOCK - 1];
        rf_barrier();
        if (cols - first <= RF_ROW_BLOCK) return;
    }
}

// y[r, :] = a[r, :] + b[ids[r], :]. y may be a. An index that is not below b_rows is a fault and gives a row of NaN.
RF_KERNEL(RF_ROW_BLOCK)
add_id(const float *a, const float *b, const u32 *ids, float *y, u32 rows, u32 cols, u32 b_rows, u64 *fault, u32 tag) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 id = ids[t.row];
    u64 base = (u64)t.row * cols;
    if (id >= b_rows && t.begin == 0) rf_fault(fault, tag, t.row, id);
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        f4 v = rf_splat(__builtin_nanf(""));
        if (id < b_rows) v = rf_load4(a + base + c, count) + rf_load4(b + (u64)id * cols + c, count);
        rf_store4(y + base + c, v, count);
    }
}
