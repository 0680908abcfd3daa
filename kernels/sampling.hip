// Sampling: from rows of logits to a token of each.
//
// A number and its column become one rank of 64 bits: a larger number ranks higher, of equal numbers (0 and -0 are) the lower column.
// NaN ranks below everything. No two columns of a row have the same rank.
#include "include/math.h"
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

// Calls put(i, rank), i below k, for the k highest of n ranks at(0), .., at(n - 1), in no order. No two are equal, but for those that are 0 and
// not among them. For a whole block.
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

#define RF_MAX 3.40282346638528859812e38f
// Between the smallest and the largest number of f32.
RF_DEVICE float finite(float x) { return x > RF_MAX ? RF_MAX : x < -RF_MAX ? -RF_MAX : x; }

// x[row, ids[row, i]] lowered, for each i below m with a count over 0: a number l over 0 becomes l / repeat (Keskar et al., CTRL,
// 2019), another l * repeat; then count * frequency + presence is subtracted. All three are held within the range of f32; -inf and NaN
// become -inf.
// Columns beyond the row are passed over. No column occurs twice in a row of ids, unless with a count of 0. grid = (rows, ceil(m / 256)).
RF_KERNEL(RF_ROW_BLOCK)
penalties(float *x, const u32 *ids, const u32 *counts, u32 rows, u32 cols, u32 m, float repeat, float frequency, float presence) {
    u32 row = rf_block_x(), i = rf_block_y() * RF_ROW_BLOCK + rf_thread();
    if (row >= rows || i >= m) return;
    u32 column = ids[(u64)row * m + i], count = counts[(u64)row * m + i];
    if (count == 0 || column >= cols) return;
    float *logit = x + (u64)row * cols + column;
    float l = *logit;
    float lowered = finite(l > 0.0f ? l / repeat : l * repeat);
    float result = finite(lowered - finite((float)count * frequency + presence));
    *logit = l > -RF_INF ? result + 0.0f : -RF_INF;
}

// Candidates of a row, sorted, with weights in parts of `chunk` to a thread.
struct Candidates {
    const float *values;
    float top, temperature, bound; // no weight where (value - top) / temperature is below the bound
    u32 end, chunk;
    float *parts; // the sums of weights of each thread's part

    RF_DEVICE float weight(const Candidates &c, u32 i) {
        float distance = (c.values[i] - c.top) / c.temperature;
        return distance >= c.bound ? rf_exp(distance) : 0.0f; // NaN has none either
    }
    // Each thread adds up its own part; then the sum of all, in order.
    RF_DEVICE float sum(const Candidates &c) {
        u32 from = rf_thread() * c.chunk;
        float own = 0.0f;
        for (u32 i = from; i < c.end && i - from < c.chunk; ++i) own += weight(c, i);
        rf_barrier(); // the previous parts have been read
        c.parts[rf_thread()] = own;
        rf_barrier();
        float total = 0.0f;
        for (u32 t = 0; t < RF_ROW_BLOCK; ++t) total += c.parts[t];
        return total;
    }
    // The first candidate with which the sum of weights reaches `wanted` (or passes it, if OVER), or the last with a weight. The same in
    // every thread. The sum in the order of `sum` does not fall, so no more than one part is gone through.
    template <bool OVER> RF_DEVICE u32 find(const Candidates &c, float wanted) {
        float before = 0.0f, reached = 0.0f;
        u32 part = 0;
        for (u32 t = 0; t < RF_ROW_BLOCK; ++t) {
            bool there = OVER ? reached > wanted : reached >= wanted;
            float own = c.parts[t];
            if (!there && own > 0.0f) part = t, before = reached, reached += own;
        }
        u32 last = part * c.chunk;
        for (u32 i = last; i < c.end && i - part * c.chunk < c.chunk; ++i) {
            float own = weight(c, i);
            before += own;
            if (own > 0.0f) last = i;
            if (OVER ? before > wanted : before >= wanted) break;
        }
        return last;
    }
};

// y[row] = one of the ids of the first `used` of k candidates, whose values do not rise. Kept are the fewest first ones whose
// probabilities at temperature `truncate_at` sum up to top_p (Holtzman et al., 2019; 1 keeps all), of these the ones of at least min_p
// times the largest (Nguyen et al., 2024; log_min_p = ln min_p, -inf keeps all). Of the rest the first at which the sum of probabilities at
// `temperature` passes uniform[row], the last if rounding keeps the sum from it. 2^32 - 1 if the largest value is not finite. grid = rows.
RF_KERNEL(RF_ROW_BLOCK)
draw(const float *values, const u32 *ids, const float *uniform, u32 *y, u32 rows, u32 k, u32 used, float temperature, float truncate_at,
     float top_p, float log_min_p) {
    RF_SHARED float parts[RF_ROW_BLOCK];
    u32 row = rf_block_x();
    if (row >= rows) return;
    const float *in = values + (u64)row * k;
    float top = in[0];
    if (!(rf_abs(top) < RF_INF)) {
        if (rf_thread() == 0) y[row] = 0xffffffffu;
        return;
    }
    u32 chunk = (used + RF_ROW_BLOCK - 1) / RF_ROW_BLOCK;
    Candidates all = {in, top, truncate_at, -RF_MAX, used, chunk, parts};
    u32 end = used;
    if (top_p < 1.0f) end = Candidates::find<false>(all, top_p * Candidates::sum(all)) + 1;
    // min_p looks at the distance at truncate_at; this is the same bound at `temperature`.
    float bound = log_min_p == -RF_INF ? -RF_MAX : finite(log_min_p * truncate_at / temperature);
    Candidates kept = {in, top, temperature, bound, end, chunk, parts};
    float total = Candidates::sum(kept);
    u32 drawn = Candidates::find<true>(kept, uniform[row] * total);
    if (rf_thread() == 0) y[row] = ids[(u64)row * k + drawn];
}
