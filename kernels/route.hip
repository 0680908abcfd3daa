// The experts of each token and the factors of their results, from the scores of a router: `k` columns of each row, the highest first.
//
// 32 lanes have a row. Lane l alone has the columns l, l + 32, ... of LDS, so no barrier is needed.
#include "include/grid.h"
#include "include/math.h"
#include "include/team.h"

#define RF_ROUTE_ROWS 4
#define RF_ROUTE_BLOCK (32 * RF_ROUTE_ROWS)
#define RF_ROUTE_EXPERTS 512

// Gates, as ops/route.rs numbers them.
#define RF_ROUTE_SOFTMAX 0
#define RF_ROUTE_SOFTMAX_OF_CHOSEN 1

// A number as an integer of the same order, where 0 and -0 are equal. NaN is 1, below every number, and 0 is a column that is not there.
RF_DEVICE u32 ordered(float x) {
    u32 bits = __builtin_bit_cast(u32, x);
    if (x != x) return 1;
    if (x == 0.0f) return 0x80000000u;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}
RF_DEVICE float number(u32 order) { return __builtin_bit_cast(float, order >> 31 ? order & 0x7fffffffu : ~order); }

struct Column {
    u32 order, id;
};
RF_DEVICE Column higher(Column a, Column b) {
    return a.order > b.order || (a.order == b.order && a.id < b.id) ? a : b;
}
template <u32 MASK> RF_DEVICE Column exchanged(Column own) {
    float order = rf_shuffle_xor<MASK>(__builtin_bit_cast(float, own.order));
    float id = rf_shuffle_xor<MASK>(__builtin_bit_cast(float, own.id));
    return higher(own, Column{__builtin_bit_cast(u32, order), __builtin_bit_cast(u32, id)});
}
// The highest of 32 lanes, the lowest id of equal ones.
RF_DEVICE Column highest(Column own) {
    return exchanged<1>(exchanged<2>(exchanged<4>(exchanged<8>(exchanged<16>(own)))));
}

// The highest column of this lane from `begin` to before `end`, without `but`.
RF_DEVICE Column own_highest(const u32 *orders, u32 begin, u32 end, u32 but) {
    Column own = {0, 0};
    for (u32 c = begin + (rf_thread() - begin) % 32; c < end; c += 32)
        if (c != but) own = higher(own, Column{orders[c], c});
    return own;
}

// The `kept` groups of columns with the highest sum of their two highest, as bits; a group of one column has that one.
RF_DEVICE u32 kept_groups(const u32 *orders, u32 size, u32 groups, u32 kept) {
    u32 lane = Team32::lane();
    Column own = {0, lane}; // of the group with the lane's number
    for (u32 g = 0; g < groups; ++g) {
        u32 begin = g * size, end = begin + size;
        Column first = highest(own_highest(orders, begin, end, ~0u));
        float sum = number(first.order);
        if (size > 1) sum += number(highest(own_highest(orders, begin, end, first.id)).order);
        if (lane == g) own.order = ordered(sum);
    }
    u32 bits = 0;
    for (u32 i = 0; i < kept; ++i) {
        u32 group = highest(own).id;
        bits |= 1u << group;
        if (lane == group) own.order = 0;
    }
    return bits;
}

// What a score gives before its bias: `top` and `inverse` are those of the softmax over all.
RF_DEVICE float share_of(float score, u32 gate, float top, float inverse) {
    if (gate == RF_ROUTE_SOFTMAX) return rf_exp(score - top) * inverse;
    return gate == RF_ROUTE_SOFTMAX_OF_CHOSEN ? score : rf_sigmoid(score);
}

// The softmax over the lanes that take part; 0 of the others.
RF_DEVICE float softmax_of_lanes(float x, bool here) {
    float top = rf_max32(here ? x : -RF_INF);
    if (top == -RF_INF) top = 0.0f;
    float e = here ? rf_exp(x - top) : 0.0f, sum = rf_sum32(e);
    return sum == 0.0f ? 0.0f : e * rf_rcp(sum);
}

// experts <= RF_ROUTE_EXPERTS, k <= 32, groups <= 32 of equal size, k <= kept * size. bias may be null. grid = ceil(rows / RF_ROUTE_ROWS).
RF_KERNEL(RF_ROUTE_BLOCK)
route(const float *scores, const float *bias, u32 *ids, float *factors, u32 rows, u32 experts, u32 k, u32 gate, u32 groups, u32 kept,
      u32 normalised, float least, float factor) {
    RF_SHARED u32 orders_of[RF_ROUTE_ROWS][RF_ROUTE_EXPERTS]; // the bits of scores before
    rf_grid_begin();
    u32 lane = Team32::lane(), row = rf_block_x() * RF_ROUTE_ROWS + rf_thread() / 32;
    if (row >= rows) return;
    u32 *orders = orders_of[rf_thread() / 32];
    const float *in = scores + (u64)row * experts;

    float top = -RF_INF, sum = 0.0f;
    for (u32 c = lane; c < experts; c += 32) {
        float x = in[c];
        orders[c] = __builtin_bit_cast(u32, x);
        top = rf_max(top, x);
    }
    top = rf_max32(top);
    if (top == -RF_INF) top = 0.0f;
    if (gate == RF_ROUTE_SOFTMAX) {
        for (u32 c = lane; c < experts; c += 32) sum += rf_exp(__builtin_bit_cast(float, orders[c]) - top);
        sum = rf_sum32(sum);
    }
    float inverse = sum == 0.0f ? 0.0f : rf_rcp(sum);
    for (u32 c = lane; c < experts; c += 32) {
        float share = share_of(__builtin_bit_cast(float, orders[c]), gate, top, inverse);
        orders[c] = ordered(bias ? share + bias[c] : share);
    }

    if (groups > 1) {
        u32 size = experts / groups, bits = kept_groups(orders, size, groups, kept);
        for (u32 c = lane; c < experts; c += 32)
            if (!(bits >> c / size & 1)) orders[c] = 0;
    }
    u32 id = 0; // of the place with the lane's number
    for (u32 i = 0; i < k; ++i) {
        Column best = highest(own_highest(orders, 0, experts, ~0u));
        if (lane == i) id = best.id;
        if (lane == best.id % 32) orders[best.id] = 0;
    }

    bool chosen = lane < k;
    float own = chosen ? share_of(in[id], gate, top, inverse) : 0.0f;
    if (gate == RF_ROUTE_SOFTMAX_OF_CHOSEN) own = softmax_of_lanes(own, chosen);
    float divisor = rf_max(rf_sum32(own), least);
    if (normalised) own *= rf_rcp(divisor);
    if (chosen) {
        ids[(u64)row * k + lane] = id;
        factors[(u64)row * k + lane] = own * factor;
    }
}
