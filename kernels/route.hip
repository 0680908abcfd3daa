// The experts of each token and the factors of their results, from the scores of a router: `k` columns of each row, the highest first.
//
// 32 lanes have a row. Lane l alone has the columns l, l + 32, ...: in registers, or in LDS if they are over 256 or in groups. So no barrier is needed.
#include "include/grid.h"
#include "include/math.h"
#include "include/team.h"

#define RF_ROUTE_ROWS 4
#define RF_ROUTE_BLOCK (32 * RF_ROUTE_ROWS)
#define RF_ROUTE_EXPERTS 512

// Gates, as ops/route.rs numbers them.
#define RF_ROUTE_SOFTMAX 0
#define RF_ROUTE_SOFTMAX_OF_CHOSEN 1

RF_ARITHMETIC u32 bits(float x) { return __builtin_bit_cast(u32, x); }
RF_ARITHMETIC float of_bits(u32 word) { return __builtin_bit_cast(float, word); }

// A number as an integer of the same order, where 0 and -0 are equal. NaN is 1, below every number, and 0 is a column that is not there.
RF_ARITHMETIC u32 ordered(float x) {
    u32 word = bits(x + 0.0f); // -0 becomes 0
    u32 order = word ^ ((u32)((i32)word >> 31) | 0x80000000u);
    return x != x ? 1 : order;
}
RF_ARITHMETIC float number(u32 order) { return of_bits(order >> 31 ? order & 0x7fffffffu : ~order); }

struct Column {
    u32 order, id;
};
RF_ARITHMETIC Column higher(Column a, Column b) {
    return a.order > b.order || (a.order == b.order && a.id < b.id) ? a : b;
}

// The highest of 32 lanes, the lowest id of equal ones.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
RF_DEVICE Column highest(Column own) {
    u32 order, id;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(order) : "r"(own.order));
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(id) : "r"(own.order == order ? own.id : ~0u));
    return Column{order, id};
}
#else
template <u32 MASK> RF_ARITHMETIC Column exchanged(Column own) {
    return higher(own, Column{bits(rf_shuffle_xor<MASK>(of_bits(own.order))), bits(rf_shuffle_xor<MASK>(of_bits(own.id)))});
}
RF_ARITHMETIC Column highest(Column own) {
    return exchanged<1>(exchanged<2>(exchanged<4>(exchanged<8>(exchanged<16>(own)))));
}
#endif

// Columns of a lane, each a word: the bits of its score, then of its share, at last its order.
template <u32 HELD> struct InRegisters {
    u32 word[HELD];
    static constexpr bool GROUPS = false;

    // f(the word, the column, whether it is there) of each. Without branches: the loads are in flight together. Columns that are not there have the number of the last.
    template <class F> __attribute__((device, always_inline)) void each(u32 experts, F f) {
#pragma unroll
        for (u32 i = 0; i < HELD; ++i) {
            u32 c = Team32::lane() + 32 * i;
            f(word[i], rf_min(c, experts - 1), c < experts);
        }
    }
    // The highest of this lane. Neighbours are compared, so that of equal ones the first has the lower id.
    __attribute__((device, always_inline, nodebug)) Column own_highest(u32) const {
        Column best[HELD];
#pragma unroll
        for (u32 i = 0; i < HELD; ++i) best[i] = Column{word[i], Team32::lane() + 32 * i};
#pragma unroll
        for (u32 step = 1; step < HELD; step *= 2)
#pragma unroll
            for (u32 i = 0; i < HELD; i += 2 * step)
                if (best[i + step].order > best[i].order) best[i] = best[i + step];
        return best[0];
    }
    __attribute__((device, always_inline, nodebug)) void take_out(u32 id) {
#pragma unroll
        for (u32 i = 0; i < HELD; ++i)
            if (Team32::lane() + 32 * i == id) word[i] = 0;
    }
};

struct InLds {
    u32 *word;
    static constexpr bool GROUPS = true;

    template <class F> __attribute__((device, always_inline)) void each(u32 experts, F f) {
        for (u32 c = Team32::lane(); c < experts; c += 32) f(word[c], c, true);
    }
    // The highest of this lane from column `begin` to before `end`, without `but`.
    __attribute__((device, always_inline)) Column own_highest(u32 begin, u32 end, u32 but) const {
        Column own = {0, 0};
        for (u32 c = begin + (rf_thread() - begin) % 32; c < end; c += 32)
            if (c != but) own = higher(own, Column{word[c], c});
        return own;
    }
    __attribute__((device, always_inline)) Column own_highest(u32 experts) const { return own_highest(0, experts, ~0u); }
    __attribute__((device, always_inline)) void take_out(u32 id) {
        if (Team32::lane() == id % 32) word[id] = 0;
    }
    // Takes out all but those of the `kept` groups with the highest sum of their two highest; a group of one column has that one.
    __attribute__((device, always_inline)) void keep_groups(u32 experts, u32 groups, u32 kept) {
        u32 lane = Team32::lane(), size = experts / groups;
        Column own = {0, lane}; // of the group with the lane's number
        for (u32 g = 0; g < groups; ++g) {
            u32 begin = g * size, end = begin + size;
            Column first = highest(own_highest(begin, end, ~0u));
            float sum = number(first.order);
            if (size > 1) sum += number(highest(own_highest(begin, end, first.id)).order);
            if (lane == g) own.order = ordered(sum);
        }
        u32 kept_bits = 0;
        for (u32 i = 0; i < kept; ++i) {
            u32 group = highest(own).id;
            kept_bits |= 1u << group;
            if (lane == group) own.order = 0;
        }
        each(experts, [=](u32 &order, u32 c, bool) {
            if (!(kept_bits >> c / size & 1)) order = 0;
        });
    }
};

// What a score gives before its bias: `top` and `inverse` are those of the softmax over all.
RF_ARITHMETIC float share_of(float score, u32 gate, float top, float inverse) {
    bool softmax = gate == RF_ROUTE_SOFTMAX;
    float e = rf_exp(softmax ? score - top : -rf_abs(score));
    float sigmoid = (score >= 0.0f ? 1.0f : e) * rf_rcp(1.0f + e); // as rf_sigmoid
    float share = softmax ? e * inverse : sigmoid;
    return gate == RF_ROUTE_SOFTMAX_OF_CHOSEN ? score : share;
}

// The softmax over the lanes that take part; 0 of the others.
RF_DEVICE float softmax_of_lanes(float x, bool here) {
    float top = rf_max32(here ? x : -RF_INF);
    if (top == -RF_INF) top = 0.0f;
    float e = here ? rf_exp(x - top) : 0.0f, sum = rf_sum32(e);
    return sum == 0.0f ? 0.0f : e * rf_rcp(sum);
}

struct Routing {
    u32 experts, k, gate, groups, kept, normalised;
    float least, factor;
};

template <class Columns>
RF_DEVICE void route_row(Columns columns, const float *in, const float *bias, u32 *ids, float *factors, const Routing &how) {
    u32 lane = Team32::lane();
    float top = -RF_INF, sum = 0.0f;
    columns.each(how.experts, [&](u32 &word, u32 c, bool here) {
        float score = in[c];
        word = bits(here ? score : -RF_INF);
    });
    if (how.gate == RF_ROUTE_SOFTMAX) {
        columns.each(how.experts, [&](u32 &word, u32, bool) { top = rf_max(top, of_bits(word)); });
        top = rf_max32(top);
        if (top == -RF_INF) top = 0.0f;
        columns.each(how.experts, [&](u32 &word, u32, bool) { sum += rf_exp(of_bits(word) - top); });
        sum = rf_sum32(sum);
    }
    float inverse = sum == 0.0f ? 0.0f : rf_rcp(sum);
    columns.each(how.experts, [&](u32 &word, u32, bool) { word = bits(share_of(of_bits(word), how.gate, top, inverse)); });
    if (bias) columns.each(how.experts, [&](u32 &word, u32 c, bool) { word = bits(of_bits(word) + bias[c]); });
    columns.each(how.experts, [&](u32 &word, u32, bool here) { word = ordered(of_bits(word)) & (0u - (u32)here); });

    if constexpr (Columns::GROUPS)
        if (how.groups > 1) columns.keep_groups(how.experts, how.groups, how.kept);
    u32 id = 0; // of the place with the lane's number
#pragma unroll 1
    for (u32 i = 0; i < how.k; ++i) {
        u32 best = highest(columns.own_highest(how.experts)).id;
        if (lane == i) id = best;
        columns.take_out(best);
    }

    bool chosen = lane < how.k;
    float own = chosen ? share_of(in[id], how.gate, top, inverse) : 0.0f;
    if (how.gate == RF_ROUTE_SOFTMAX_OF_CHOSEN) own = softmax_of_lanes(own, chosen);
    if (how.normalised) own *= rf_rcp(rf_max(rf_sum32(own), how.least));
    if (chosen) {
        ids[lane] = id;
        factors[lane] = own * how.factor;
    }
}

// experts <= RF_ROUTE_EXPERTS, k <= 32, groups <= 32 of equal size, k <= kept * size. bias may be null. grid = ceil(rows / RF_ROUTE_ROWS).
RF_KERNEL(RF_ROUTE_BLOCK)
route(const float *scores, const float *bias, u32 *ids, float *factors, u32 rows, u32 experts, u32 k, u32 gate, u32 groups, u32 kept,
      u32 normalised, float least, float factor) {
    RF_SHARED u32 words[RF_ROUTE_ROWS][RF_ROUTE_EXPERTS];
    rf_grid_begin();
    u32 row = rf_block_x() * RF_ROUTE_ROWS + rf_thread() / 32;
    if (row >= rows) return;
    Routing how = {experts, k, gate, groups, kept, normalised, least, factor};
    scores += (u64)row * experts, ids += (u64)row * k, factors += (u64)row * k;
    if (experts <= 256 && groups == 1) route_row(InRegisters<8>{}, scores, bias, ids, factors, how);
    else route_row(InLds{words[rf_thread() / 32]}, scores, bias, ids, factors, how);
}
