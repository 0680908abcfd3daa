// Products of the chosen experts' packed weights with 8-bit activations: RF_EXPERTS_Q8(name, Type) makes the kernels of a type of planes.h.
//
// A stack of experts is one packed matrix of experts * n rows: those of expert e begin at e * n. An id that is not below `experts` reads nothing,
// gives NaN and is a fault.
#pragma once
#include "fault.h"
#include "matvec_q8_joint.h"
#include "tile.h"

// How gate and up are joined: by the numbers of RF_GATES, and RF_GATE_BOUNDED.
#define RF_GATE_BOUNDED 5
struct ExpertUnit {
    u32 op;
    float bound;
};
// f(gate) * up, or min(gate, bound) * sigmoid(1.702 min(gate, bound)) * (1 + up between -bound and bound).
RF_DEVICE float rf_expert_unit(ExpertUnit unit, float gate, float up) {
    if (unit.op == RF_GATE_BOUNDED) {
        gate = gate > unit.bound ? unit.bound : gate;
        return gate * rf_sigmoid(1.702f * gate) * (rf_clamp(up, -unit.bound, unit.bound) + 1.0f);
    }
    return (unit.op == RF_GATE_SILU ? rf_silu(gate) : rf_gelu_tanh(gate)) * up;
}

// Gate and up of one expert, with their biases, and what joins them: a group is R / 2 rows of both. The sums of a row of gate and of up are 16
// lanes apart.
template <class W, u32 R> struct ExpertGated {
    const u8 *__restrict__ gate, *__restrict__ up;
    const float *gate_bias, *up_bias; // or null; those of the expert
    float *y;
    u32 n, row_blocks;
    ExpertUnit unit;
    u32 first;  // the expert's first row
    u64 blocks; // of the stack
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        u32 row = first + rf_min(group * (R / 2) + r % (R / 2), n - 1);
        return W::load(r < R / 2 ? gate : up, blocks, row * row_blocks + i);
    }
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf, float sum) const {
        u32 row = group * (R / 2) + own % (R / 2);
        const float *bias = own < R / 2 ? gate_bias : up_bias;
        if (bias && row < n) sum += bias[row];
        float other = rf_shuffle_xor<16>(sum);
        if (leads && own < R / 2 && row < n) y[row] = rf_expert_unit(unit, sum, other);
    }
};

// y[pair, :] = the unit of gate[id] x[pair / share, :] (+ bias) and up[id] x[pair / share, :] (+ bias) for the id of each pair. grid = (blocks, pairs).
template <class W, u32 R>
RF_DEVICE void experts_gated(const float *x, const u32 *RF_WRITTEN_BEFORE ids, const u8 *gate, const u8 *up, const float *gate_bias,
                             const float *up_bias, float *y, u32 n, u32 row_blocks, u32 experts, u32 share, ExpertUnit unit, u32 each, u32 more,
                             u64 *fault, u32 tag) {
    rf_grid_begin();
    u32 pair = rf_block_y(), id = ids[pair];
    y += (u64)pair * n;
    if (id >= experts) {
        if (rf_block_x() != 0) return;
        if (rf_thread() == 0) rf_fault(fault, tag, pair, id);
        for (u32 row = rf_thread(); row < n; row += RF_ROW_BLOCK) y[row] = __builtin_nanf("");
        return;
    }
    if (gate_bias) gate_bias += id * n, up_bias += id * n;
    ExpertGated<W, R> rows = {gate, up, gate_bias, up_bias, y, n, row_blocks, unit, id * n, (u64)experts * n * row_blocks};
    FloatRow<> in = {x + (u64)(pair / share) * (row_blocks * RF_Q8_BLOCK), nullptr, nullptr, 0.0f};
    matvec_q8<W, 1, R, 512>(in, rows, GroupShare{1, row_blocks, each, more});
}

// A row of f32 whose blocks have a factor for each `row_blocks` of them.
struct FactoredRow {
    FloatRow<> row;
    const float *RF_WRITTEN_BEFORE factors;
    u32 row_blocks;
    static constexpr bool PARTS = false;
    typedef FloatRow<>::Weights Weights;
    __attribute__((device, always_inline)) Weights weights(u32 count) const { return row.weights(count); }
    template <u32 M, u32 CAP> __attribute__((device, always_inline)) void fill(Q8Held<M * CAP> &held, Weights of, u32 part, u32 count) const {
        row.template fill<M, CAP>(held, of, part, count);
        rf_barrier();
        for (u32 i = rf_thread(); i < count; i += RF_ROW_BLOCK) {
            float d = __builtin_bit_cast(float, held.rest[i].x) * factors[i / row_blocks];
            held.rest[i].x = __builtin_bit_cast(u32, d);
        }
    }
};

// The rows of the chosen experts one after the other, as if each row of theirs were one long row.
template <class W, u32 R, u32 MOST> struct ExpertsInRow {
    const u8 *__restrict__ w;
    const u32 (&first)[MOST]; // of each chosen expert the first row, in LDS
    const float *bias, *factors; // a bias of each row of each expert, or null
    const float *beside, *gate;  // a row that is added, or null; the sigmoid of `gate` is its factor, unless `gate` is null
    const float *residual;       // another row that is added, or null
    float *y;
    u32 n, row_blocks, used;
    u64 blocks;
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        u32 row = rf_min(group * R + r, n - 1), at = i / row_blocks;
        return W::load(w, blocks, (first[at] + row - at) * row_blocks + i);
    }
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf, float sum) const {
        u32 row = group * R + own;
        if (!leads || row >= n) return;
        if (bias)
            for (u32 u = 0; u < used; ++u) sum = rf_fma(factors[u], bias[first[u] + row], sum);
        if (beside) sum += gate ? beside[row] * rf_sigmoid(gate[0]) : beside[row];
        if (residual) sum += residual[row];
        y[row] = sum;
    }
};

// y[t, :] = the sum over u of factors[t, u] * (w[ids[t, u]] x[t, u, :] (+ bias[ids[t, u]])) (+ beside[t, :] (* sigmoid(gate[t]))) (+ residual[t, :]).
// grid = (blocks, tokens). used * row_blocks is at most 512.
template <class W, u32 R>
RF_DEVICE void experts_sum(const float *x, const u32 *RF_WRITTEN_BEFORE ids, const float *factors, const u8 *w, const float *bias, const float *beside,
                           const float *gate, const float *residual, float *y, u32 n, u32 row_blocks, u32 experts, u32 used, u32 each, u32 more,
                           u64 *fault, u32 tag) {
    constexpr u32 MOST = 512;
    RF_SHARED u32 first[MOST];
    rf_grid_begin();
    u32 token = rf_block_y();
    y += (u64)token * n, ids += token * used, factors += token * used;
    for (u32 u = 0; u < used; ++u) {
        u32 id = ids[u];
        if (id >= experts) {
            if (rf_block_x() != 0) return;
            if (rf_thread() == 0) rf_fault(fault, tag, token * used + u, id);
            for (u32 row = rf_thread(); row < n; row += RF_ROW_BLOCK) y[row] = __builtin_nanf("");
            return;
        }
        if (rf_thread() == u % RF_ROW_BLOCK) first[u] = id * n;
    }
    rf_barrier();
    if (beside) beside += (u64)token * n;
    if (gate) gate += token;
    if (residual) residual += (u64)token * n;
    ExpertsInRow<W, R, MOST> rows = {w, first, bias, factors, beside, gate, residual, y, n, row_blocks, used, (u64)experts * n * row_blocks};
    FloatRow<> row = {x + (u64)token * used * (row_blocks * RF_Q8_BLOCK), nullptr, nullptr, 0.0f};
    matvec_q8<W, 1, R, 512>(FactoredRow{row, factors, row_blocks}, rows, GroupShare{1, used * row_blocks, each, more});
}

// Pairs of one expert: those that are not done yet, and those of RF_ROW_BLOCK more.
struct PairList {
    static constexpr u32 LEFT = 8;
    u16 pair[LEFT + RF_ROW_BLOCK];
    u32 masks[RF_ROWS_PER_BLOCK]; // which of its 32 a team has found

    // Puts those of the pairs base .. base + RF_ROW_BLOCK behind `left` others, in their order, and says how many there are then.
    __attribute__((device, always_inline)) u32 append(u32 left, const u32 *RF_WRITTEN_BEFORE ids, u32 base, u32 pairs, u32 expert) {
        u32 p = base + rf_thread(), team = rf_thread() / 32, lane = rf_thread() % 32;
        bool own = p < rf_opaque(pairs) && ids[p] == expert;
        u32 mask = own ? 1u << lane : 0;
        mask |= other<1>(mask), mask |= other<2>(mask), mask |= other<4>(mask), mask |= other<8>(mask), mask |= other<16>(mask);
        rf_barrier(); // what was there has been used
        if (lane == 0) masks[team] = mask;
        rf_barrier();
        u32 at = left + __builtin_popcount(mask & ((1u << lane) - 1)), all = left;
#pragma unroll
        for (u32 t = 0; t < RF_ROWS_PER_BLOCK; ++t) {
            u32 found = __builtin_popcount(masks[t]);
            if (t < team) at += found;
            all += found;
        }
        if (own) pair[at] = (u16)p;
        rf_barrier();
        return all;
    }
    template <u32 MASK> RF_DEVICE u32 other(u32 x) { return __builtin_bit_cast(u32, rf_shuffle_xor<MASK>(__builtin_bit_cast(float, x))); }

    // Moves the last ones, at most LEFT, to the front.
    __attribute__((device, always_inline)) void keep(u32 from, u32 all) {
        u16 mine = from + rf_thread() < all ? pair[from + rf_thread()] : 0;
        rf_barrier();
        if (from + rf_thread() < all) pair[rf_thread()] = mine;
    }
};

// Rows of 8-bit activations as quantize_q8 makes them, each of which `share` pairs have.
struct RowsOfPairs {
    const u8 *RF_WRITTEN_BEFORE x;
    const u16 *pair; // m of the list, in LDS
    u32 m, share, row_blocks;
    u32 blocks; // of all rows, below 2^30
    static constexpr bool PARTS = true;
    struct Weights {};
    __attribute__((device, always_inline)) Weights weights(u32) const { return {}; }
    template <u32 M, u32 CAP> __attribute__((device, always_inline)) void fill(Q8Held<M * CAP> &held, Weights, u32 part, u32 count) const {
#pragma unroll 1
        for (u32 to = rf_thread(); to < M * CAP; to += RF_ROW_BLOCK) {
            u32 i = to % CAP;
            if (i >= count) continue;
            u32 at = pair[rf_min(to / CAP, m - 1)] / rf_opaque(share) * rf_opaque(row_blocks) + part + i;
            held.quants[to] = ((const u4 *)x)[at];
            held.quants[held.HIGH + to] = ((const u4 *)x)[blocks + at];
            held.rest[to] = ((const u2 *)x)[4 * blocks + at];
        }
    }
};

// One expert for those pairs.
template <class W, u32 R> struct ExpertRows {
    const u8 *__restrict__ w;
    const u16 *pair;
    u32 m;
    float *y;
    u32 n, row_blocks, first; // the expert's first row
    u64 blocks;               // of the stack
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        return W::load(w, blocks, (first + rf_min(group * R + r, n - 1)) * row_blocks + i);
    }
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf part, float sum) const {
        u32 row = group * R + own % R, j = own / R;
        if (leads && row < n && j < m) {
            u64 at = (u64)pair[j] * n + row;
            y[at] = part.first ? sum : sum + y[at];
        }
    }
};

// y[pair, :] = w[ids[pair]] x[pair / share, :] for up to 2^16 pairs: an expert's block reads its weights once for eight of them.
// grid = (blocks, experts).
template <class W>
RF_DEVICE void experts_pairs(const u8 *x, const u32 *RF_WRITTEN_BEFORE ids, const u8 *w, float *y, u32 pairs, u32 n, u32 row_blocks, u32 experts,
                             u32 share, u32 each, u32 more, u64 *fault, u32 tag) {
    constexpr u32 M = 8, R = 2;
    static_assert(M <= PairList::LEFT);
    RF_SHARED PairList list;
    rf_grid_begin();
    u32 expert = rf_block_y();
    if (expert == 0 && rf_block_x() == 0) {
        for (u32 p = rf_thread(); p < pairs; p += RF_ROW_BLOCK) {
            u32 id = ids[p];
            if (id < experts) continue;
            rf_fault(fault, tag, p, id);
            for (u32 row = 0; row < n; ++row) y[(u64)p * n + row] = __builtin_nanf("");
        }
    }
    u32 all_blocks = rf_opaque(pairs / share * row_blocks), chosen = rf_opaque(expert);
    u32 left = 0;
    // Numbers that are needed after a product are in vector registers meanwhile: CDNA has no scalar ones left.
#pragma unroll 1
    for (u32 base = 0; base < pairs; base += RF_ROW_BLOCK) {
        u32 found = list.append(left, ids, base, pairs, chosen), from = 0;
        bool last = base + RF_ROW_BLOCK >= pairs;
#pragma unroll 1
        while (from + M <= found || (last && from < found)) {
            u32 m = rf_min(M, found - from);
            const u16 *pair = list.pair + from;
            RowsOfPairs in = {x, pair, m, share, row_blocks, all_blocks};
            ExpertRows<W, R> rows = {w, pair, m, y, n, row_blocks, chosen * n, (u64)experts * n * row_blocks};
            u32 next = rf_opaque(from + m), count = rf_opaque(found), begun = rf_opaque(base);
            matvec_q8<W, M, R, 128>(in, rows, GroupShare{m, row_blocks, each, more});
            rf_barrier(); // the activations and sums have been used
            from = rf_uniform(next), found = rf_uniform(count), base = rf_uniform(begun);
        }
        left = found - from;
        list.keep(from, found);
    }
}

#define RF_EXPERTS_Q8(name, Type)                                                                                                                    \
    RF_KERNEL_RESIDENT(RF_ROW_BLOCK, 2)                                                                                                              \
    experts_##name##_gated(const float *x, const u32 *ids, const u8 *gate, const u8 *up, const float *gate_bias, const float *up_bias,               \
                           float *y, u32 n, u32 row_blocks, u32 experts, u32 share, u32 op, float bound, u32 each, u32 more,                         \
                           u64 *fault, u32 tag) {                                                                                                    \
        experts_gated<Type, GroupOf<Type>::one>(x, ids, gate, up, gate_bias, up_bias, y, n, row_blocks, experts, share, ExpertUnit{op, bound}, each, \
                               more, fault, tag);                                                                                                    \
    }                                                                                                                                                \
    RF_KERNEL_RESIDENT(RF_ROW_BLOCK, 2)                                                                                                              \
    experts_##name##_sum(const float *x, const u32 *ids, const float *factors, const u8 *w, const float *bias, const float *beside,                  \
                         const float *gate, const float *residual, float *y, u32 n, u32 row_blocks, u32 experts, u32 used, u32 each, u32 more,       \
                         u64 *fault, u32 tag) {                                                                                                      \
        experts_sum<Type, GroupOf<Type>::one>(x, ids, factors, w, bias, beside, gate, residual, y, n, row_blocks, experts, used, each, more, fault,  \
                                              tag);                                                                                                  \
    }                                                                                                                                                \
    RF_KERNEL_RESIDENT(RF_ROW_BLOCK, 2)                                                                                                              \
    experts_##name##_pairs(const u8 *x, const u32 *ids, const u8 *w, float *y, u32 pairs, u32 n, u32 row_blocks, u32 experts,                        \
                           u32 share, u32 each, u32 more, u64 *fault, u32 tag) {                                                                     \
        experts_pairs<Type>(x, ids, w, y, pairs, n, row_blocks, experts, share, each, more, fault, tag);                                             \
    }
