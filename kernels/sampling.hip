// Orders of rows: the largest number, the k largest, all.
//
// A number and its column become one rank of 64 bits: a larger number ranks higher, of equal numbers (0 and -0 are) the lower column.
// NaN ranks below everything. No two columns of a row have the same rank.
#include "include/team.h"

RF_DEVICE u64 rank_of(float x, u32 column) {
    u32 bits = __builtin_bit_cast(u32, x);
    u32 high = bits >> 31 ? ~bits : bits | 0x80000000u;
    if (x == 0.0f) high = 0x80000000u;
    if (x != x) high = 0;
    return (u64)high << 32 | (u32)~column;
}
RF_DEVICE u32 column_of(u64 rank) { return ~(u32)rank; }

// The first `size` of a list in LDS, a power of two, in falling order: Batcher's bitonic sort. For a whole block; the list may be read
// after a barrier.
RF_DEVICE void sort_down(u64 *list, u32 size) {
    u32 tid = rf_thread();
    for (u32 length = 2; length <= size; length *= 2) {
        for (u32 step = length / 2; step > 0; step /= 2) {
            rf_barrier();
            for (u32 i = tid; i < size / 2; i += RF_ROW_BLOCK) {
                u32 a = 2 * i - (i & (step - 1));
                u64 first = list[a], second = list[a + step];
                if ((first < second) == ((a & length) == 0)) list[a] = second, list[a + step] = first;
            }
        }
    }
}

// y[row] = the column of the highest rank. grid = rows.
RF_KERNEL(RF_ROW_BLOCK) argmax(const float *x, u32 *y, u32 rows, u32 cols) {
    RF_SHARED u64 best[RF_ROW_BLOCK];
    u32 row = rf_block_x(), tid = rf_thread();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    u64 own = 0;
    for (u32 c = tid; c < cols; c += RF_ROW_BLOCK) {
        u64 rank = rank_of(in[c], c);
        own = rank > own ? rank : own;
    }
    best[tid] = own;
    for (u32 half = RF_ROW_BLOCK / 2; half > 0; half /= 2) {
        rf_barrier();
        if (tid < half && best[tid + half] > best[tid]) best[tid] = best[tid + half];
    }
    if (tid == 0) y[row] = column_of(best[0]);
}

#define RF_TOP_K 2048
// Values of a digit of four bits.
#define RF_DIGITS 16

// Calls put(i, rank), i below k, for the k highest of n ranks at(0), .., at(n - 1), in no order. No two of these k are equal; a rank
// of 0 is none of them. For a whole block.
//
// The k-th rank is found digit by digit from the top: each pass counts, among the ranks that begin with the digits found so far, how
// many have each next digit. It ends as soon as all ranks with the digits found are wanted.
template <class At, class Put> RF_DEVICE void highest(u32 n, u32 k, At at, Put put) {
    RF_SHARED u32 counts[RF_DIGITS][RF_ROW_BLOCK]; // a column to a thread
    RF_SHARED u32 sums[RF_DIGITS][RF_DIGITS];      // of 16 threads each
    u32 tid = rf_thread();
    u64 prefix = 0; // the digits found
    u32 wanted = k; // of the ranks that begin with them
    u32 shift = 64; // bits below them
    for (bool all = false; !all && shift > 0;) {
        shift -= 4;
#pragma unroll
        for (u32 d = 0; d < RF_DIGITS; ++d) counts[d][tid] = 0;
        for (u32 i = tid; i < n; i += RF_ROW_BLOCK) {
            u64 top = at(i) >> shift;
            if (top >> 4 == prefix) counts[top & 15][tid] += 1;
        }
        rf_barrier();
        u32 sum = 0;
        for (u32 i = 0; i < RF_ROW_BLOCK / RF_DIGITS; ++i) sum += counts[tid / RF_DIGITS][i * RF_DIGITS + tid % RF_DIGITS];
        sums[tid / RF_DIGITS][tid % RF_DIGITS] = sum;
        rf_barrier();
        u32 digit = RF_DIGITS, here = 0;
        do {
            wanted -= here;
            digit -= 1;
            here = 0;
            for (u32 i = 0; i < RF_DIGITS; ++i) here += sums[digit][i];
        } while (here < wanted && digit > 0);
        prefix = prefix << 4 | digit;
        all = here == wanted;
    }

    u32 own = 0;
    for (u32 i = tid; i < n; i += RF_ROW_BLOCK) own += at(i) >> shift >= prefix;
    counts[0][tid] = own; // its last reader was before a barrier
    rf_barrier();
    u32 place = 0;
    for (u32 i = 0; i < RF_ROW_BLOCK; ++i) place += i < tid ? counts[0][i] : 0;
    for (u32 i = tid; i < n; i += RF_ROW_BLOCK) {
        u64 rank = at(i);
        if (rank >> shift >= prefix && place < k) put(place++, rank);
    }
}

// The k highest of n ranks of a row in order, as columns, and their numbers in it, unless null.
template <class At> RF_DEVICE void sorted(const float *in, float *values, u32 *ids, u32 n, u32 k, At at) {
    RF_SHARED u64 list[RF_TOP_K];
    u32 tid = rf_thread();
    highest(n, k, at, [&](u32 i, u64 rank) { list[i] = rank; });
    u32 size = 1;
    while (size < k) size *= 2;
    for (u32 i = k + tid; i < size; i += RF_ROW_BLOCK) list[i] = 0; // below every rank

    sort_down(list, size);
    rf_barrier();
    for (u32 i = tid; i < k; i += RF_ROW_BLOCK) {
        u32 column = column_of(list[i]);
        ids[i] = column;
        if (values) values[i] = in[column];
    }
}

// ids[row] = the columns of the k highest ranks, the highest first; values[row] = their numbers, unless null. k <= cols, k <=
// RF_TOP_K. grid = rows.
RF_KERNEL(RF_ROW_BLOCK) top_k(const float *x, float *values, u32 *ids, u32 rows, u32 cols, u32 k) {
    u32 row = rf_block_x();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    u64 first = (u64)row * k;
    sorted(in, values ? values + first : values, ids + first, cols, k, [&](u32 c) { return rank_of(in[c], c); });
}

// The same for long rows in two launches. The first finds the k highest ranks of each part of RF_PART columns, k <= RF_PART, in no order; what
// the last part lacks is 0. grid = (parts, rows).
#define RF_PART 4096
RF_KERNEL(RF_ROW_BLOCK) top_k_parts(const float *x, u64 *ranks, u32 rows, u32 cols, u32 k) {
    u32 row = rf_block_y(), begin = rf_block_x() * RF_PART;
    if (row >= rows || begin >= cols) return;
    u32 parts = (cols - 1) / RF_PART + 1, n = cols - begin < RF_PART ? cols - begin : RF_PART;
    const float *in = x + (u64)row * cols + begin;
    u64 *out = ranks + ((u64)row * parts + rf_block_x()) * k;
    u32 some = n < k ? n : k;
    highest(n, some, [&](u32 c) { return rank_of(in[c], begin + c); }, [&](u32 i, u64 rank) { out[i] = rank; });
    for (u32 i = some + rf_thread(); i < k; i += RF_ROW_BLOCK) out[i] = 0;
}

// The second finds the k highest of a row among those of its parts. grid = rows.
RF_KERNEL(RF_ROW_BLOCK)
top_k_of_parts(const u64 *ranks, const float *x, float *values, u32 *ids, u32 rows, u32 cols, u32 k) {
    u32 row = rf_block_x();
    if (row >= rows) return;
    u32 n = ((cols - 1) / RF_PART + 1) * k;
    const u64 *in = ranks + (u64)row * n;
    u64 first = (u64)row * k;
    sorted(x + (u64)row * cols, values ? values + first : values, ids + first, n, k, [&](u32 i) { return in[i]; });
}

#define RF_ARGSORT 4096

// ids[row] = the columns of x[row] in order: the largest number first, or the smallest; of equal numbers the lower column first, NaN
// last. cols <= RF_ARGSORT. grid = rows.
RF_KERNEL(RF_ROW_BLOCK) argsort(const float *x, u32 *ids, u32 rows, u32 cols, u32 descending) {
    RF_SHARED u64 list[RF_ARGSORT];
    u32 row = rf_block_x(), tid = rf_thread();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    u32 size = 1;
    while (size < cols) size *= 2;
    for (u32 i = tid; i < size; i += RF_ROW_BLOCK) list[i] = i < cols ? rank_of(descending ? in[i] : -in[i], i) : 0;
    sort_down(list, size);
    rf_barrier();
    for (u32 i = tid; i < cols; i += RF_ROW_BLOCK) ids[(u64)row * cols + i] = column_of(list[i]);
}
