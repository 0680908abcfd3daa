// Recurrent layers on the matrix unit, 16 tokens of a sequence at a time: the rules of recurrent.hip for prompts, with the formula of chunks.
//
// Of the tokens i = 0 to 15 of a chunk, with keys K, queries Q and values V (a row for each token), the state S of a head (columns of keys by elements of
// values) before them, and the products of the decays up to a token, D_i = exp(G_i):
//   M_ij = exp(G_i - G_j) for i >= j, else 0
//   W = (I + strictly lower part of (diag(beta) K K^T) .* M)^-1 diag(beta) (V - diag(D) K S)       of a delta rule
//   W = V                                                                                          of a selective scan
//   out = diag(D) Q S + ((Q K^T) .* M) W
//   S = D_15 S + (diag(exp(G_15 - G)) K)^T W
// A chunk with fewer tokens has zeros for the others. The matrix is inverted in f32. Where no decay is over 1, its inverse times diag(beta) at most doubles the length of a
// vector, as the symmetric part of diag(1 / beta) + the strictly lower part of M .* (K K^T) is at least 1/2. A NaN or an infinity of a token reaches all results of its chunk.
//
// A block has 64 value elements of a head and a sequence, each of its 4 waves 16 of them: their part of the state stays in registers, in f32, whatever the
// number of tokens. All waves prepare keys and queries; the first makes the inverse, the second the products of queries and keys.
//
// Operands of the matrix unit are f16. A wave brings its part of the state into that range by a power of two that it chooses for each chunk, and then what is left of it
// and the corrected values by another: the largest is below 2^7, so that W is below 2^15 if no decay is over 1.
#include "include/order.h"
#include "include/range16.h"
#include "include/recurrent.h"
#include "include/tile.h"

#define RF_CHUNK 16u
#define RF_CHUNK_WAVES 4u
#define RF_CHUNK_VALUES (16 * RF_CHUNK_WAVES) // value elements of a block
#define RF_CHUNK_COLS 128u                    // the most columns of a state
#define RF_CHUNK_TILES (RF_CHUNK_COLS / 16)

struct ChunkLds {
    static constexpr u32 ROW = RF_CHUNK_COLS + 8, TURNED = RF_CHUNK + 8; // elements
    union {
        struct {
            RfHalf queries[RF_CHUNK * ROW], keys[RF_CHUNK * ROW];
        };
        float tile[RF_CHUNK_WAVES][16][17]; // of a state, for each wave
    };
    RfHalf turned[RF_CHUNK_COLS * TURNED]; // keys, a row for each column
    RfHalf scores[RF_CHUNK * TURNED], inverse[RF_CHUNK * TURNED];
    float correction[RF_CHUNK][RF_CHUNK]; // the strictly lower part
    float sum[RF_CHUNK], decay[RF_CHUNK], left[RF_CHUNK], gate[RF_CHUNK]; // G_i, exp(G_i), exp(G_15 - G_i), and beta, or the step of a scan
    float query_unit[RF_CHUNK], key_unit[RF_CHUNK];                       // of a scan: what a row in f16 is multiples of
    u32 token[RF_CHUNK_WAVES][RF_CHUNK];
};

// Bit l says whether the condition holds in lane l of 32.
RF_ARITHMETIC u32 which_of32(bool holds, u32 lane) {
    float bits = __builtin_bit_cast(float, (u32)holds << lane);
    auto with = [&](float other) { bits = __builtin_bit_cast(float, __builtin_bit_cast(u32, bits) | __builtin_bit_cast(u32, other)); };
    with(rf_shuffle_xor<16>(bits)), with(rf_shuffle_xor<8>(bits)), with(rf_shuffle_xor<4>(bits)), with(rf_shuffle_xor<2>(bits));
    with(rf_shuffle_xor<1>(bits));
    return __builtin_bit_cast(u32, bits);
}

// The power of two that brings a number just below 2^power, and its inverse: those of range16.h for other powers than 15.
RF_ARITHMETIC Range16 range_below(float largest, u32 power) {
    u32 exponent = __builtin_bit_cast(u32, largest) >> 23;
    if (exponent < 64) exponent = 64;
    u32 down = rf_min(exponent + 1 - power, 253); // the exponent of the inverse; both stay normal
    return {__builtin_bit_cast(float, (254 - down) << 23), __builtin_bit_cast(float, down << 23)};
}

RF_ARITHMETIC float largest_of(const RfTile &d) {
    float largest = 0.0f;
#pragma unroll
    for (u32 e = 0; e < RF_TILE; ++e) largest = rf_max(largest, rf_abs(d[e]));
    return largest;
}

RF_ARITHMETIC float wave_max(float x) {
    x = rf_max32(x);
#if defined(__gfx90a__) || defined(__gfx942__)
    x = rf_max(x, rf_other_half(x));
#endif
    return x;
}

// Puts the next tokens of sequence s from token t on into `token`, and token 0 where there are no more; says how many there are, and moves t behind them.
// A wave has its own list, and all of them the same one.
RF_DEVICE u32 next_tokens(u32 *token, u32 thread, const u32 *sequence, u32 s, u32 &t, Tokens of, bool reports, u64 *fault, u32 tag) {
    u32 count = 0, lane = thread % 32;
    if (lane < RF_CHUNK) token[lane] = 0;
    rf_wave_barrier();
    while (t < of.tokens && count < RF_CHUNK) {
        bool in = t + lane < of.tokens;
        u32 own = in ? sequence[t + lane] : 0;
        if (in && own >= of.sequences && s == 0 && reports) rf_fault(fault, tag, t + lane, own);
        bool takes = in && own == s;
        u32 found = which_of32(takes, lane), at = count + __builtin_popcount(found & ((1u << lane) - 1));
        if (takes && at < RF_CHUNK) token[at] = t + lane;
        count += __builtin_popcount(found);
        t += 32;
    }
    rf_wave_barrier();
    if (count <= RF_CHUNK) return count;
    t = token[RF_CHUNK - 1] + 1;
    return RF_CHUNK;
}

// What a rule reads of a token: queries and keys of its head, `stride` elements from token to token, and values. `corrects`: the gated delta rule of recurrent.hip's
// delta_net_rows; else the selective scan of ssm_scan with one rate to a head, whose queries and keys are c and b.
struct ChunkRule {
    const float *query, *key, *value;
    u32 stride, value_stride;
    // [tokens, heads]: the factor of a correction, and the step of a decay (alpha or dt), each before its function. Of a scan the step is the factor of a value, too.
    const float *beta, *step;
    float bias, rate; // added to a step, and times a step
    u32 heads, head, dim, cols;
    float eps, scale;
    bool corrects;

    RF_DEVICE float value_of(const ChunkRule &r, u32 t, u32 element) {
        float value = r.value[(u64)t * r.value_stride + element];
        return r.corrects ? rf_silu(value) : value;
    }
    // Makes the vector of a token, of which 32 lanes have a part each, what is multiplied, with elements of at most 1; returns its unit.
    RF_ARITHMETIC float prepare(const ChunkRule &r, StateRow<4> &row) {
        if (r.corrects) {
            float squares = 0.0f;
#pragma unroll
            for (u32 i = 0; i < 4; ++i) row.v[i] = rf_silu(row.v[i]), squares = rf_fma(row.v[i], row.v[i], squares);
            float factor = rf_rsqrt(rf_sum32(squares) + r.eps);
#pragma unroll
            for (u32 i = 0; i < 4; ++i) row.v[i] *= factor;
            return 1.0f;
        }
        float largest = 0.0f;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) largest = rf_max(largest, rf_abs(row.v[i]));
        Range16 range = range_below(rf_max32(largest), 0);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) row.v[i] *= range.up;
        return range.down;
    }
};

// A wave's part of a state: tile t has columns from 16 t on (a) of 16 value elements (b). Of these there are `rows`, and `cols` columns.
// Addresses in it are computed anew for each use: kept, they would take more registers than there are.
struct ChunkState {
    RfTile v[RF_CHUNK_TILES];

    RF_DEVICE void load(ChunkState &held, const float *from, u32 rows, u32 cols) {
        u32 lane = rf_anew(rf_lane()), last = rows == 0 ? 0 : rows - 1;
#pragma unroll
        for (u32 t = 0; t < RF_CHUNK_TILES; ++t) {
            rf_in_order();
#pragma unroll
            for (u32 i = 0; i < RF_TILE; ++i) {
                // Outside the state another element is loaded, and not used.
                u32 col = 16 * t + rf_tile_a(lane, i), element = rf_tile_b(lane, rf_tile_which(i));
                float value = from[rf_min(element, last) * cols + rf_min(col, cols - 1)];
                held.v[t][i] = col < cols && element < rows ? value : 0.0f;
            }
        }
    }
    // Tile by tile through LDS.
    RF_DEVICE void store(const ChunkState &held, float (&tile)[16][17], float *to, float unit, u32 rows, u32 cols) {
        u32 lane = rf_anew(rf_lane());
#pragma unroll
        for (u32 t = 0; t < RF_CHUNK_TILES; ++t) {
            rf_wave_barrier(); // the tile before has been read
#pragma unroll
            for (u32 i = 0; i < RF_TILE; ++i) tile[rf_tile_b(lane, rf_tile_which(i))][rf_tile_a(lane, i)] = held.v[t][i] * unit;
            rf_wave_barrier();
#pragma unroll 1
            for (u32 n = lane; n < 256; n += RF_WAVE) {
                u32 col = 16 * t + n % 16, element = n / 16;
                if (col < cols && element < rows) to[element * cols + col] = tile[element][n % 16];
            }
        }
    }
};

// Keys and queries of a chunk's tokens to LDS, and what is said of a token once.
RF_DEVICE void prepare_chunk(ChunkLds &shared, const ChunkRule &rule, u32 count, u32 thread) {
    constexpr u32 GROUPS = RF_CHUNK_WAVES * RF_WAVE / 32, EACH = 2 * RF_CHUNK / GROUPS;
    u32 group = thread / 32, lane = thread % 32;
    const u32 *token = shared.token[thread / RF_WAVE];
    StateRow<4> rows[EACH];
#pragma unroll
    for (u32 n = 0; n < EACH; ++n) {
        u32 i = (n * GROUPS + group) % RF_CHUNK, is_key = (n * GROUPS + group) / RF_CHUNK;
        const float *from = (is_key ? rule.key : rule.query) + (u64)token[i] * rule.stride;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) rows[n].v[e] = from[rf_min(lane + 32 * e, rule.cols - 1)];
    }
    if (thread < RF_CHUNK) {
        float gate = 0.0f, decay = 0.0f;
        if (lane < count) {
            u64 at = (u64)token[lane] * rule.heads + rule.head;
            float step = rf_softplus(rule.step[at] + rule.bias);
            gate = rule.corrects ? rf_sigmoid(rule.beta[at]) : step, decay = step * rule.rate;
            // exp(-128) is 0, and sums with such a decay keep the digits of the others.
            if (decay < -128.0f) decay = -128.0f;
        }
        shared.gate[lane] = gate, shared.left[lane] = decay;
    }
    if (thread < RF_WAVE) rf_wave_barrier();
    float left = 0.0f;
    if (thread < RF_CHUNK) {
        float all = 0.0f, sum = 0.0f;
#pragma unroll
        for (u32 j = 0; j < RF_CHUNK; ++j) {
            float decay = shared.left[j];
            all += decay;
            if (j <= lane) sum += decay;
        }
        shared.sum[lane] = sum, shared.decay[lane] = rf_exp(sum);
        left = rf_exp(all - sum);
    }
    if (thread < RF_WAVE) rf_wave_barrier();
    if (thread < RF_CHUNK) shared.left[lane] = left;
    // One copy of the code: the next row moves to the first place.
#pragma unroll 1
    for (u32 n = 0; n < EACH; ++n) {
        u32 i = (n * GROUPS + group) % RF_CHUNK, is_key = (n * GROUPS + group) / RF_CHUNK;
#pragma unroll
        for (u32 e = 0; e < 4; ++e)
            if (lane + 32 * e >= rule.cols) rows[0].v[e] = 0.0f;
        float unit = ChunkRule::prepare(rule, rows[0]);
        if (lane == 0) (is_key ? shared.key_unit : shared.query_unit)[i] = unit;
        RfHalf *to = (is_key ? shared.keys : shared.queries) + i * ChunkLds::ROW;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) {
            u32 col = lane + 32 * e;
            RfHalf value = (RfHalf)(i < count ? rows[0].v[e] : 0.0f);
            to[col] = value;
            if (is_key) shared.turned[col * ChunkLds::TURNED + i] = value;
        }
#pragma unroll
        for (u32 next = 1; next < EACH; ++next) rows[next - 1] = rows[next];
    }
}

// The inverse of a delta rule's matrix, times diag(beta): lane j of 16 has column j.
RF_DEVICE void invert(ChunkLds &shared, u32 j) {
    if (j >= RF_CHUNK) return;
    float column[RF_CHUNK];
#pragma unroll
    for (u32 i = 0; i < RF_CHUNK; ++i) {
        float sum = i == j ? 1.0f : 0.0f;
        rf_in_order();
#pragma unroll
        for (u32 l = 0; l < i; ++l) sum = rf_fma(-shared.correction[i][l], column[l], sum);
        column[i] = sum;
    }
    float gate = shared.gate[j];
#pragma unroll
    for (u32 i = 0; i < RF_CHUNK; ++i) shared.inverse[i * ChunkLds::TURNED + j] = (RfHalf)(column[i] * gate);
}

// The products of rows of x in LDS with keys, times the decay between both tokens: f(i, j, product) for those of this lane.
template <class F> RF_DEVICE void products_with_keys(const ChunkLds &shared, const RfHalf *x, u32 lane, F f) {
    RfTile d = {};
#pragma unroll
    for (u32 t = 0; t < RF_CHUNK_TILES; ++t) {
        if (t % 2 == 0) rf_in_order(), rf_tile_finish(d);
        rf_tile_multiply(d, rf_row_load(x + rf_x_row() * ChunkLds::ROW, 2 * t, 0), rf_row_load(shared.keys + rf_y_row() * ChunkLds::ROW, 2 * t, 0));
    }
#pragma unroll
    for (u32 e = 0; e < RF_TILE; ++e) {
        u32 i = rf_tile_a(lane, e), j = rf_tile_b(lane, rf_tile_which(e));
        f(i, j, i >= j ? d[e] * rf_exp(shared.sum[i] - shared.sum[j]) : 0.0f);
    }
}

// grid = (heads * ceil(dim / RF_CHUNK_VALUES), sequences).
RF_DEVICE void chunks_of(ChunkLds &shared, const float *state, const ChunkRule &rule, const u32 *sequence, const u32 *ids, float *out, const Into &to, Tokens of,
                         u32 s, bool waits, u32 first, u64 *fault, u32 tag) {
    u32 dim = rule.dim, cols = rule.cols, wave = rf_uniform(rf_thread() / RF_WAVE);
    u64 rows = (u64)rule.heads * dim;
    bool reports = rf_block_x() == 0 && rf_thread() < 32;
    u32 slot = slot_of(ids, s, of, reports && rf_thread() == 0, fault, tag);
    if (slot == of.slots) return;
    // Of the wave: `own` value elements from `first` on; without any it reads a neighbour's, and writes none.
    u32 own = first < dim ? dim - first : 0;
    u64 place = ((u64)rule.head * dim + rf_min(first, dim - 1)) * cols;
    const float *from = state + (u64)slot * rows * cols + place;
    ChunkState held;
    ChunkState::load(held, from, own, cols);
    float unit = 1.0f; // of what is held
    for (u32 t = 0;;) {
        rf_lds_barrier(); // the chunk before has been used
        u32 thread = rf_anew(rf_thread()), lane = thread % RF_WAVE;
        u32 count = next_tokens(shared.token[wave], thread, sequence, s, t, of, reports, fault, tag);
        if (count == 0) break;
        prepare_chunk(shared, rule, count, thread);
        RfTile values = {};
#pragma unroll
        for (u32 e = 0; e < RF_TILE; ++e) {
            u32 i = rf_tile_a(lane, e), element = first + rf_tile_b(lane, rf_tile_which(e));
            float value = ChunkRule::value_of(rule, shared.token[wave][i], rf_min(element, dim - 1));
            values[e] = i < count && element < dim ? value : 0.0f;
        }
        rf_lds_barrier();
        if (rule.corrects && wave == 0) {
            products_with_keys(shared, shared.keys, lane,
                               [&](u32 i, u32 j, float product) { shared.correction[i][j] = i > j ? product * shared.gate[i] : 0.0f; });
            rf_wave_barrier();
            invert(shared, lane);
        }
        if (wave == 1)
            products_with_keys(shared, shared.queries, lane,
                               [&](u32 i, u32 j, float product) { shared.scores[i * ChunkLds::TURNED + j] = (RfHalf)product; });
        if (!rule.corrects) {
#pragma unroll
            for (u32 e = 0; e < RF_TILE; ++e) {
                u32 i = rf_tile_a(lane, e);
                values[e] *= shared.gate[i] * shared.key_unit[i];
            }
        }
        float largest = 0.0f;
#pragma unroll
        for (u32 n = 0; n < RF_CHUNK_TILES; ++n) largest = rf_max(largest, largest_of(held.v[n]));
        largest = wave_max(largest) * unit;
        Range16 range = range_below(largest, 7);
        // One after the other: their product may be infinite.
        if (unit * range.up != 1.0f)
#pragma unroll
            for (u32 n = 0; n < RF_CHUNK_TILES; ++n) held.v[n] = held.v[n] * unit * range.up;
        unit = range.down;

        RfTile read = {}, known = {};
#pragma unroll
        for (u32 n = 0; n < RF_CHUNK_TILES; ++n) {
            rf_in_order();
            rf_tile_finish(held.v[n]);
            RfPart<RfHalf> part = rf_tile_y<RfHalf>(held.v[n]);
            rf_tile_multiply(read, rf_row_load(shared.queries + rf_x_row() * ChunkLds::ROW, 2 * n, 0), part);
            if (rule.corrects) rf_tile_multiply(known, rf_row_load(shared.keys + rf_x_row() * ChunkLds::ROW, 2 * n, 0), part);
            rf_tile_finish(read), rf_tile_finish(known);
        }
        rf_lds_barrier();

        RfTile decay = {}, left = {};
#pragma unroll
        for (u32 e = 0; e < RF_TILE; ++e) decay[e] = shared.decay[rf_tile_a(lane, e)], left[e] = shared.left[rf_tile_a(lane, e)];
        if (rule.corrects) values -= decay * known * unit;
        float last = shared.decay[RF_CHUNK - 1];
        Range16 next = range_below(rf_max(largest * last, wave_max(largest_of(values))), 7);
        values *= next.up;
        if (rule.corrects) {
            RfTile corrected = {};
            rf_tile_multiply(corrected, rf_x_load(shared.inverse, ChunkLds::TURNED), rf_tile_y<RfHalf>(values));
            values = corrected;
        }
        RfTile results = {};
        rf_tile_multiply(results, rf_x_load(shared.scores, ChunkLds::TURNED), rf_tile_y<RfHalf>(values));
#pragma unroll
        for (u32 e = 0; e < RF_TILE; ++e) {
            u32 i = rf_tile_a(lane, e), element = first + rf_tile_b(lane, rf_tile_which(e));
            float result = rf_fma(results[e], next.down, decay[e] * read[e] * unit) * rule.scale;
            if (!rule.corrects) result *= shared.query_unit[i];
            if (i < count && element < dim) out[(u64)shared.token[wave][i] * rows + rule.head * dim + element] = result;
        }
        RfPart<RfHalf> part = rf_tile_y<RfHalf>(values * left);
        float remains = last * unit * next.up;
        unit = next.down;
#pragma unroll
        for (u32 n = 0; n < RF_CHUNK_TILES; ++n) {
            rf_in_order();
            held.v[n] *= remains;
            rf_tile_multiply(held.v[n], rf_x_load(shared.turned + 16 * n * ChunkLds::TURNED, ChunkLds::TURNED), part);
        }
    }
    Into::put(to, s, of.slots, rows * cols, waits, reports && rf_thread() == 0, [&](float *after) {
        ChunkState::store(held, shared.tile[wave], after + place, unit, own, cols);
    });
}

RF_DEVICE void chunks(const float *state, const ChunkRule &rule, const u32 *sequence, const u32 *ids, float *out, const Into &to, Tokens of, u64 *fault, u32 tag) {
    RF_SHARED ChunkLds shared;
    u32 blocks = (rule.dim + RF_CHUNK_VALUES - 1) / RF_CHUNK_VALUES;
    u32 first = rf_block_x() % blocks * RF_CHUNK_VALUES + rf_uniform(rf_thread() / RF_WAVE) * 16;
    bool waits = Into::waits(to, ids, of.sequences);
    u32 s = rf_block_y(), end = s + 1;
    if (waits) {
        if (s != 0) return;
        end = of.sequences;
    }
#pragma unroll 1
    for (; s < end; ++s) chunks_of(shared, state, rule, sequence, ids, out, to, of, s, waits, first, fault, tag);
    if (!waits) return;
    rf_barrier(); // what the other threads have written is seen
    u64 size = (u64)rule.heads * rule.dim * rule.cols;
    u32 begin = rf_block_x() % blocks * RF_CHUNK_VALUES, end_of = rf_min(begin + RF_CHUNK_VALUES, rule.dim);
    u64 at = ((u64)rule.head * rule.dim + begin) * rule.cols;
    for (s = 0; s < of.sequences; ++s) {
        if (ids[s] >= of.slots) continue;
        Into::put(to, s, of.slots, size, false, rf_thread() == 0 && rf_block_x() == 0, [&](float *place) {
#pragma unroll 1
            for (u32 i = rf_thread(); i < (end_of - begin) * rule.cols; i += RF_CHUNK_WAVES * RF_WAVE) place[at + i] = to.after[s * size + at + i];
        });
    }
}

// `seldom` of recurrent.h for an address in global memory.
template <class T> RF_DEVICE T *seldom_at(T *p) {
#if defined(__gfx90a__) || defined(__gfx942__)
    u64 at = (u64)p;
    at = (u64)rf_opaque((u32)(at >> 32)) << 32 | rf_opaque((u32)at);
    return (T *)(__attribute__((address_space(1))) T *)at;
#endif
    return p;
}

// A delta rule has null for b and c, a scan for beta and bias.
RF_KERNEL_RESIDENT(RF_CHUNK_WAVES *RF_WAVE, 2)
recurrent16(float *state, const float *x, const float *b, const float *c, const float *beta, const float *step, const float *bias, const float *rate,
            const u32 *sequence, const u32 *ids, const u32 *into, float *out, float *after, u32 heads, u32 k_heads, u32 neighbours, u32 dim, u32 cols,
            float eps, float scale, Tokens of, u64 *fault, u32 tag, u32 into_tag) {
    rf_grid_begin();
    u32 head = rf_block_x() / ((dim + RF_CHUNK_VALUES - 1) / RF_CHUNK_VALUES);
    u32 k_head = neighbours ? head / (heads / k_heads) : head % k_heads;
    u32 keys = k_heads * cols, values = heads * dim;
    bool corrects = beta != nullptr;
    ChunkRule rule;
    rule.query = (corrects ? x : c) + k_head * cols;
    rule.key = corrects ? rule.query + keys : b + k_head * cols;
    rule.value = x + (corrects ? 2 * keys : 0) + head * dim;
    rule.stride = rf_opaque(corrects ? 2 * keys + values : keys), rule.value_stride = rf_opaque(corrects ? 2 * keys + values : values);
    rule.beta = seldom_at(beta), rule.step = seldom_at(step), rule.bias = rf_opaque(bias ? bias[head] : 0.0f), rule.rate = rf_opaque(rate[head]);
    rule.heads = rf_opaque(heads), rule.head = rf_opaque(head), rule.dim = seldom<128>(dim), rule.cols = seldom<128>(cols), rule.corrects = corrects;
    rule.eps = rf_opaque(eps), rule.scale = rf_opaque(scale);
    Into to = {after, state, into, fault, rf_opaque(into_tag)};
    of = {seldom<128>(of.tokens), seldom<128>(of.sequences), seldom<128>(of.slots)};
    chunks(state, rule, sequence, ids, out, to, of, fault, rf_opaque(tag));
}
