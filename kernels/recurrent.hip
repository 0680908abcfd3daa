// Recurrent layers, token after token: include/recurrent.h.
#include "include/recurrent.h"

// Convolution over the last `taps` inputs of each channel, of which the state holds those before the step, the oldest first.
struct Conv {
    const float *state, *x, *weight;
    const u32 *sequence, *ids;
    float *out;
    u32 channels, taps;
    u64 *fault;
    u32 tag;

    // Calls f(place, input) for the `kept` inputs of a channel in sequence s before token y, the newest first: places count down to 0.
    template <class F> RF_DEVICE void before(const Conv &a, u32 channel, u32 slot, u32 s, u32 y, u32 kept, F f) {
        u32 left = kept;
        for (u32 t = y; t-- > 0 && left > 0;)
            if (a.sequence[t] == s) --left, f(left, a.x[(u64)t * a.channels + channel]);
        const float *state = a.state + ((u64)slot * a.channels + channel) * kept;
#pragma unroll 1
        for (u32 i = left; i-- > 0;) f(i, state[kept - left + i]);
    }
};

// One token.
RF_DEVICE void conv_token(const Conv &a, u32 channel, u32 y, Tokens of) {
    u32 s = a.sequence[y], kept = a.taps - 1;
    bool reports = channel == 0;
    if (s >= of.sequences) {
        if (reports) rf_fault(a.fault, a.tag, y, s);
        return;
    }
    u32 slot = slot_of(a.ids, s, of, reports, a.fault, a.tag);
    if (slot == of.slots || channel >= a.channels) return;
    const float *w = a.weight + (u64)channel * a.taps;
    float sum = w[kept] * a.x[(u64)y * a.channels + channel];
    Conv::before(a, channel, slot, s, y, kept, [&](u32 i, float input) { sum = rf_fma(w[i], input, sum); });
    a.out[(u64)y * a.channels + channel] = sum;
}

// Tokens from `begin` to `end`, which are of one sequence: the inputs before a token stay in registers.
template <u32 KEPT> RF_DEVICE void conv_run(const Conv &a, u32 channel, u32 begin, u32 end, Tokens of) {
    u32 s = a.sequence[begin], slot = slot_of(a.ids, s, of, channel == 0, a.fault, a.tag);
    if (slot == of.slots || channel >= a.channels) return;
    float w[KEPT + 1], seen[KEPT];
#pragma unroll
    for (u32 i = 0; i <= KEPT; ++i) w[i] = a.weight[(u64)channel * (KEPT + 1) + i];
    const float *state = a.state + ((u64)slot * a.channels + channel) * KEPT;
    u32 t = begin, left = KEPT;
#pragma unroll
    for (u32 i = KEPT; i-- > 0;) {
#pragma unroll 1
        while (t > 0 && a.sequence[t - 1] != s) --t;
        seen[i] = t > 0 ? a.x[(u64)--t * a.channels + channel] : state[--left];
    }
#pragma unroll 4
    for (u32 y = begin; y < end; ++y) {
        float input = a.x[(u64)y * a.channels + channel], sum = w[KEPT] * input;
#pragma unroll
        for (u32 i = KEPT; i-- > 0;) sum = rf_fma(w[i], seen[i], sum);
#pragma unroll
        for (u32 i = 0; i + 1 < KEPT; ++i) seen[i] = seen[i + 1];
        seen[KEPT - 1] = input;
        a.out[(u64)y * a.channels + channel] = sum;
    }
}

// The tokens of a block.
RF_DEVICE void conv_tokens(const Conv &a, u32 channel, u32 begin, u32 end, Tokens of) {
    bool is_one = end - begin > 1 && a.sequence[begin] < of.sequences;
    for (u32 y = begin + 1; y < end; ++y) is_one &= a.sequence[y] == a.sequence[begin];
    if (is_one && a.taps == 4) return conv_run<3>(a, channel, begin, end, of);
    if (is_one && a.taps == 3) return conv_run<2>(a, channel, begin, end, of);
#pragma unroll 1
    for (u32 y = begin; y < end; ++y) conv_token(a, channel, y, of);
}

// The last inputs of a sequence.
RF_DEVICE void conv_state(const Conv &a, u32 channel, u32 s, const Into &to, Tokens of, bool waits) {
    u32 kept = a.taps - 1, slot = slot_of(a.ids, s, of, channel == 0, a.fault, a.tag);
    if (slot == of.slots || channel >= a.channels) return;
    Into::put(to, s, of.slots, (u64)a.channels * kept, waits, channel == 0, [&](float *after) {
        after += (u64)channel * kept;
        Conv::before(a, channel, slot, s, of.tokens, kept, [&](u32 i, float input) { after[i] = input; });
    });
}

// A block has up to `each` tokens, or the state of a sequence. grid = (ceil(channels / RF_ROW_BLOCK), ceil(tokens / each) + sequences).
RF_KERNEL(RF_ROW_BLOCK)
ssm_conv(float *state, const float *x, const float *weight, const u32 *sequence, const u32 *ids, const u32 *into, float *out, float *after,
         u32 channels, u32 taps, u32 each, Tokens of, u64 *fault, u32 tag, u32 into_tag) {
    rf_grid_begin();
    Conv conv = {state, x, weight, sequence, ids, out, channels, seldom<128>(taps), fault, seldom<128>(tag)};
    u32 channel = rf_block_x() * RF_ROW_BLOCK + rf_thread();
    of = {of.tokens, of.sequences, seldom<128>(of.slots)}, each = seldom<128>(each);
    u32 y = rf_block_y(), end = y + 1;
    Into to = {after, state, into, fault, seldom<128>(into_tag)};
    bool waits = Into::waits(to, ids, of.sequences);
    if (waits) {
        if (y != 0) return;
        end = (of.tokens + each - 1) / each + of.sequences;
    }
#pragma unroll 1
    for (; y < end; ++y) {
        if (y * each < of.tokens)
            conv_tokens(conv, channel, y * each, rf_min(y * each + each, of.tokens), of);
        else
            conv_state(conv, channel, y - (of.tokens + each - 1) / each, to, of, waits);
    }
    if (!waits || channel >= channels) return;
    u64 size = (u64)channels * (taps - 1), at = (u64)channel * (taps - 1);
    for (u32 s = 0; s < of.sequences; ++s) {
        if (ids[s] >= of.slots) continue;
        Into::put(to, s, of.slots, size, false, channel == 0, [&](float *place) {
#pragma unroll 1
            for (u32 i = 0; i < taps - 1; ++i) place[at + i] = after[s * size + at + i];
        });
    }
}

// The product of a row with a vector, in all lanes.
template <u32 HELD> RF_DEVICE float dot(const StateRow<HELD> &row, const float *with, u32 cols) {
    float sum = 0.0f;
    each_column<HELD>(cols, [&](u32 i, u32 col) { sum = rf_fma(row.v[i], with[col], sum); });
    return rf_sum32(sum);
}

// Token after token; `step(row, t)` changes the row by a token and gives the result of its element. Each group of 32 lanes has one of `rows` = heads * dim rows.
// grid = (ceil(rows / RF_ROWS_PER_BLOCK), sequences).
template <u32 HELD, class Step>
RF_DEVICE void over_tokens(const float *state, const u32 *sequence, const u32 *ids, float *out, float *after, u32 rows, u32 cols, Tokens of, u64 *fault,
                           u32 tag, Step step) {
    rf_grid_begin();
    u32 row = Team32::row(), s = rf_block_y();
    bool first = Team32::lane() == 0, reports = first && row == 0;
    if (row >= rows) return;
    u32 slot = slot_of(ids, s, of, reports, fault, tag);
    if (slot == of.slots) return;
    const float *from = state + ((u64)slot * rows + row) * cols;
    StateRow<HELD> held;
    each_column<HELD>(cols, [&](u32 i, u32 col) { held.v[i] = from[col]; });
    for (u32 t = 0; t < of.tokens; ++t) {
        u32 own = sequence[t];
        if (own >= of.sequences && s == 0 && reports) rf_fault(fault, tag, t, own);
        if (own != s) continue;
        float result = step(held, row, t);
        if (first) out[(u64)t * rows + row] = result;
    }
    float *to = after + ((u64)s * rows + row) * cols;
    each_column<HELD>(cols, [&](u32 i, u32 col) { to[col] = held.v[i]; });
}

// Gated delta rule: the row decays, then `(v - S k) beta k^T` is added. k_heads divides heads; g has `gates` decays of a token and head, one or `cols`.
template <u32 HELD>
RF_DEVICE void delta_net(const float *state, const float *q, const float *k, const float *v, const float *g, const float *beta, const u32 *sequence,
                         const u32 *ids, float *out, float *after, u32 heads, u32 k_heads, u32 dim, u32 cols, u32 gates, float scale, Tokens of, u64 *fault,
                         u32 tag) {
    over_tokens<HELD>(state, sequence, ids, out, after, heads * dim, cols, of, fault, tag, [&](StateRow<HELD> &row, u32 at, u32 t) {
        u32 head = at / dim;
        u64 own = (u64)t * heads + head, key = ((u64)t * k_heads + head % k_heads) * cols;
        const float *decays = g + own * gates;
        float decay = rf_exp(decays[0]);
        each_column<HELD>(cols, [&](u32 i, u32 col) { row.v[i] *= gates == 1 ? decay : rf_exp(decays[col]); });
        float delta = (v[(u64)t * heads * dim + at] - dot(row, k + key, cols)) * beta[own];
        each_column<HELD>(cols, [&](u32 i, u32 col) { row.v[i] = rf_fma(k[key + col], delta, row.v[i]); });
        return dot(row, q + key, cols) * scale;
    });
}

// The gated delta rule from the rows of a convolution. A row of x has before their SiLU the queries and keys of `k_heads` heads, then the values of all heads. Queries and
// keys are divided by their lengths, `x / sqrt(sum x^2 + eps)`; the decay is exp(softplus(alpha + step) rate), the factor of the correction sigmoid(beta).
struct DeltaRows {
    const float *x, *beta, *alpha, *step, *rate;
    u32 heads, k_heads, neighbours, dim, cols;
    float eps, scale;
};

// Tokens of a sequence that a block prepares together.
#define RF_DELTA_TOKENS RF_ROWS_PER_BLOCK

// What the rows of a head have in common of each of these tokens.
template <u32 COLS> struct DeltaTokens {
    float keys[RF_DELTA_TOKENS][COLS], queries[RF_DELTA_TOKENS][COLS];
    float decay[RF_DELTA_TOKENS], beta[RF_DELTA_TOKENS];
    u32 token[RF_DELTA_TOKENS];
};

// Writes a vector of a token times `scale`, divided by its length.
template <u32 HELD> RF_DEVICE void put_direction(const float *from, float *to, u32 cols, float eps, float scale) {
    StateRow<HELD> v;
    float squares = 0.0f;
    each_column<HELD>(cols, [&](u32 i, u32 col) { v.v[i] = rf_silu(from[col]), squares = rf_fma(v.v[i], v.v[i], squares); });
    float factor = rf_rsqrt(rf_sum32(squares) + eps) * scale;
    each_column<HELD>(cols, [&](u32 i, u32 col) { to[col] = v.v[i] * factor; });
}

// Each group of 32 lanes prepares one of a block's tokens, and has one row of the state of its head. grid = (heads * ceil(dim / RF_ROWS_PER_BLOCK), sequences).
template <u32 HELD>
RF_DEVICE void delta_net_rows_of(DeltaTokens<32 * HELD> &shared, const float *state, const DeltaRows &a, const u32 *sequence, const u32 *ids, float *out,
                                 const Into &to, Tokens of, u32 s, bool waits, u64 *fault, u32 tag) {
    u32 blocks = (a.dim + RF_ROWS_PER_BLOCK - 1) / RF_ROWS_PER_BLOCK, head = rf_block_x() / blocks;
    u32 group = rf_thread() / 32, element = rf_block_x() % blocks * RF_ROWS_PER_BLOCK + group, rows = a.heads * a.dim;
    bool first = Team32::lane() == 0, reports = rf_thread() == 0 && rf_block_x() == 0, in = element < a.dim;
    u32 row = head * a.dim + rf_min(element, a.dim - 1);
    u32 slot = slot_of(ids, s, of, reports, fault, tag);
    if (slot == of.slots) return;
    u32 k_head = a.neighbours ? head / (a.heads / a.k_heads) : head % a.k_heads, values = 2 * a.k_heads * a.cols;
    u64 channels = values + rows;

    const float *from = state + ((u64)slot * rows + row) * a.cols;
    StateRow<HELD> held;
    each_column<HELD>(a.cols, [&](u32 i, u32 col) { held.v[i] = from[col]; });
    for (u32 t = 0; t < of.tokens;) {
        u32 count = 0, mine = 0;
        for (; t < of.tokens && count < RF_DELTA_TOKENS; ++t) {
            u32 own = sequence[t];
            if (own >= of.sequences && s == 0 && reports) rf_fault(fault, tag, t, own);
            if (own != s) continue;
            if (count == group) mine = t;
            ++count;
        }
        rf_barrier(); // the tokens before have been used
        if (group < count) {
            const float *x = a.x + mine * channels + k_head * a.cols;
            put_direction<HELD>(x, shared.queries[group], a.cols, a.eps, a.scale);
            put_direction<HELD>(x + a.k_heads * a.cols, shared.keys[group], a.cols, a.eps, 1.0f);
            if (first) {
                u64 own = (u64)mine * a.heads + head;
                shared.token[group] = mine, shared.beta[group] = rf_sigmoid(a.beta[own]);
                shared.decay[group] = rf_exp(rf_softplus(a.alpha[own] + a.step[head]) * a.rate[head]);
            }
        }
        rf_barrier();
        for (u32 i = 0; i < count; ++i) {
            u32 token = shared.token[i];
            float decay = shared.decay[i];
            each_column<HELD>(a.cols, [&](u32 c, u32) { held.v[c] *= decay; });
            float value = rf_silu(a.x[token * channels + values + row]);
            float delta = (value - dot(held, shared.keys[i], a.cols)) * shared.beta[i];
            each_column<HELD>(a.cols, [&](u32 c, u32 col) { held.v[c] = rf_fma(shared.keys[i][col], delta, held.v[c]); });
            float result = dot(held, shared.queries[i], a.cols);
            if (first && in) out[(u64)token * rows + row] = result;
        }
    }
    if (!in) return;
    Into::put(to, s, of.slots, (u64)rows * a.cols, waits, reports, [&](float *after) {
        each_column<HELD>(a.cols, [&](u32 i, u32 col) { after[(u64)row * a.cols + col] = held.v[i]; });
    });
}

template <u32 HELD>
RF_DEVICE void delta_net_rows(const float *state, const DeltaRows &a, const u32 *sequence, const u32 *ids, float *out, const Into &to, Tokens of,
                              u64 *fault, u32 tag) {
    RF_SHARED DeltaTokens<32 * HELD> shared;
    rf_grid_begin();
    bool waits = Into::waits(to, ids, of.sequences);
    u32 s = rf_block_y(), end = s + 1;
    if (waits) {
        if (s != 0) return;
        end = of.sequences;
    }
#pragma unroll 1
    for (; s < end; ++s) delta_net_rows_of<HELD>(shared, state, a, sequence, ids, out, to, of, s, waits, fault, tag);
    if (!waits) return;
    // What this lane has written itself.
    u32 blocks = (a.dim + RF_ROWS_PER_BLOCK - 1) / RF_ROWS_PER_BLOCK, head = rf_block_x() / blocks;
    u32 element = rf_block_x() % blocks * RF_ROWS_PER_BLOCK + rf_thread() / 32;
    u64 size = (u64)a.heads * a.dim * a.cols, at = ((u64)head * a.dim + element) * a.cols;
    for (s = 0; element < a.dim && s < of.sequences; ++s) {
        if (ids[s] >= of.slots) continue;
        Into::put(to, s, of.slots, size, false, rf_thread() == 0 && rf_block_x() == 0, [&](float *place) {
#pragma unroll 1
            for (u32 col = Team32::lane(); col < a.cols; col += 32) place[at + col] = to.after[s * size + at + col];
        });
    }
}

// Selective scan: the row decays by exp(softplus(dt) a), and b times the input is added. `groups` divides heads; a has `decays` of a head, one or `cols`.
template <u32 HELD>
RF_DEVICE void ssm_scan(const float *state, const float *x, const float *dt, const float *a, const float *b, const float *c, const u32 *sequence,
                        const u32 *ids, float *out, float *after, u32 heads, u32 groups, u32 dim, u32 cols, u32 decays, Tokens of, u64 *fault, u32 tag) {
    over_tokens<HELD>(state, sequence, ids, out, after, heads * dim, cols, of, fault, tag, [&](StateRow<HELD> &row, u32 at, u32 t) {
        u32 head = at / dim;
        u64 group = ((u64)t * groups + head / (heads / groups)) * cols;
        const float *rates = a + (u64)head * decays;
        float step = rf_softplus(dt[(u64)t * heads + head]), decay = rf_exp(step * rates[0]);
        float in = x[(u64)t * heads * dim + at] * step;
        each_column<HELD>(cols, [&](u32 i, u32 col) {
            float own = decays == 1 ? decay : rf_exp(step * rates[col]);
            row.v[i] = rf_fma(row.v[i], own, in * b[group + col]);
        });
        return dot(row, c + group, cols);
    });
}

#define RF_DELTA_NET(columns)                                                                                                                        \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                                          \
    delta_net_##columns(const float *state, const float *q, const float *k, const float *v, const float *g, const float *beta, const u32 *sequence,   \
                        const u32 *ids, float *out, float *after, u32 heads, u32 k_heads, u32 dim, u32 cols, u32 gates, float scale, Tokens of,       \
                        u64 *fault, u32 tag) {                                                                                                       \
        delta_net<columns / 32>(state, q, k, v, g, beta, sequence, ids, out, after, heads, k_heads, dim, cols, gates, scale, of, fault, tag);         \
    }
#define RF_DELTA_NET_ROWS(columns)                                                                                                                   \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                                          \
    delta_net_rows_##columns(float *state, const float *x, const float *beta, const float *alpha, const float *step, const float *rate,              \
                             const u32 *sequence, const u32 *ids, const u32 *into, float *out, float *after, u32 heads, u32 k_heads,                 \
                             u32 neighbours, u32 dim, u32 cols, float eps, float scale, Tokens of, u64 *fault, u32 tag, u32 into_tag) {              \
        if (columns > 128 && into != nullptr) return;                                                                                                \
        DeltaRows rows = {x, beta, alpha, step, rate, heads, k_heads, seldom<columns>(neighbours), dim, cols, seldom<columns>(eps), seldom<columns>(scale)};\
        Into to = {after, state, columns > 128 ? nullptr : into, fault, seldom<columns>(into_tag)};                                                  \
        delta_net_rows<columns / 32>(state, rows, sequence, ids, out, to, of, fault, seldom<columns>(tag));                                          \
    }
#define RF_SSM_SCAN(columns)                                                                                                                         \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                                          \
    ssm_scan_##columns(const float *state, const float *x, const float *dt, const float *a, const float *b, const float *c, const u32 *sequence,      \
                       const u32 *ids, float *out, float *after, u32 heads, u32 groups, u32 dim, u32 cols, u32 decays, Tokens of, u64 *fault,         \
                       u32 tag) {                                                                                                                    \
        ssm_scan<columns / 32>(state, x, dt, a, b, c, sequence, ids, out, after, heads, groups, dim, cols, decays, of, fault, tag);                   \
    }

// Rows of up to so many columns.
RF_DELTA_NET(128)
RF_DELTA_NET(256)
RF_DELTA_NET_ROWS(128)
RF_DELTA_NET_ROWS(256)
RF_SSM_SCAN(32)
RF_SSM_SCAN(128)
RF_SSM_SCAN(256)
