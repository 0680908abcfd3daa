// Tiles of experts: the pairs of token and expert that have the same expert, in lists of at most `rows`, for packed16.h.
//
// Block e has expert e, and block `experts` the pairs whose id is no expert: each of these is a fault. The pairs of all blocks lie one after the other in `order`, each
// block's in their own order. The tiles of a block begin at entry floor(pairs before it / rows) + e of the table, so that no block needs to know how many the
// others have: what is between them has no pairs. The table has floor(pairs / rows) + experts + 1 entries.
#include "include/fault.h"
#include "include/team.h"

// As packed16.h has it.
struct ExpertTile {
    u32 expert, begin, count;
};

// Of the threads before this one, and of all.
struct Sums {
    u32 before, all;
};
RF_DEVICE Sums sums_of(u32 (&held)[RF_ROW_BLOCK], u32 own) {
    u32 thread = rf_thread(), sum = own;
    rf_barrier(); // what was there has been used
    held[thread] = own;
    for (u32 gap = 1; gap < RF_ROW_BLOCK; gap *= 2) {
        rf_barrier();
        u32 other = thread >= gap ? held[thread - gap] : 0;
        rf_barrier();
        held[thread] = sum += other;
    }
    rf_barrier();
    return {sum - own, held[RF_ROW_BLOCK - 1]};
}

RF_KERNEL(RF_ROW_BLOCK)
expert_tiles(const u32 *ids, u32 *table, u32 *order, u32 pairs, u32 experts, u32 rows, u64 *fault, u32 tag) {
    RF_SHARED u32 held[RF_ROW_BLOCK];
    u32 expert = rf_block_x(), share = (pairs + RF_ROW_BLOCK - 1) / RF_ROW_BLOCK;
    u32 from = rf_min(rf_thread() * share, pairs), to = rf_min(from + share, pairs);
    u32 lower = 0, own = 0;
#pragma unroll 4
    for (u32 p = from; p < to; ++p) {
        u32 id = rf_min(ids[p], experts);
        lower += id < expert, own += id == expert;
    }
    u32 first = sums_of(held, lower).all;
    Sums sums = sums_of(held, own);
    u32 next = first + sums.before;
    for (u32 p = from; p < to; ++p) {
        u32 id = ids[p];
        if (rf_min(id, experts) != expert) continue;
        order[next++] = p;
        if (id >= experts) rf_fault(fault, tag, p, id);
    }
    u32 entry = first / rows + expert, end = (first + sums.all) / rows + expert + 1;
    for (u32 tile = rf_thread(); entry + tile < end; tile += RF_ROW_BLOCK) {
        u32 done = tile * rows, count = done < sums.all ? rf_min(rows, sums.all - done) : 0;
        ((ExpertTile *)table)[entry + tile] = {expert, first + done, count};
    }
}

// y[t, :] = the sum over u of factors[t, u] * (x[t, u, :] + bias[ids[t, u], :]). A row of x whose id is no expert is NaN. grid = (ceil(tokens / 8), ceil(n / 1024)).
RF_KERNEL(RF_ROW_BLOCK)
expert_rows_sum(const float *x, const u32 *ids, const float *factors, const float *bias, float *y, u32 tokens, u32 n, u32 experts, u32 used) {
    RowTile t = RowTile::of(n);
    if (t.row >= tokens) return;
    ids += (u64)t.row * used, factors += (u64)t.row * used;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 here = rf_left4(c, t.end);
        const float *from = x + (u64)t.row * used * n + c;
        f4 sum = rf_splat(0.0f);
#pragma unroll 4
        for (u32 u = 0; u < used; ++u) {
            f4 v = rf_load4(from + (u64)u * n, here);
            if (bias) v += rf_load4(bias + (u64)rf_min(ids[u], experts - 1) * n + c, here);
            sum += factors[u] * v;
        }
        rf_store4(y + (u64)t.row * n + c, sum, here);
    }
}
