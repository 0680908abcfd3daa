// y = softmax(x * scale + mask) along the last dimension, any row length. y may be x. A row with nothing but -inf gives zeros.
//
// The row's maximum, the sum of exponentials, the quotients: on a row held in registers, or in three passes over one that is too
// long. `*_rows` gives a row to 32 lanes (short rows), `*_block` to a block of 256 threads. The maximum is taken off before the exponential's own factor comes in, so that large scores
// keep their digits and masks of -3.4e38 do not become infinite.
#include "include/alibi.h"
#include "include/math.h"
#include "include/quant.h"
#include "include/strides.h"
#include "include/team.h"

// Blocks along y of softmax_masked_*, which is what every device takes.
#define RF_MASKED_BLOCKS 65535

// What becomes of a score: `at` of one, `four` of a whole four with what `read` has read for it, where `wide` allows that.
struct Plain {
    static constexpr bool has_sink = false;
    float factor;
    RF_DEVICE float at(const Plain &s, float x, u32) { return x * s.factor; }
    RF_DEVICE bool wide(const Plain &) { return true; }
    RF_DEVICE f4 read(const Plain &, u32) { return rf_splat(0.0f); }
    RF_DEVICE f4 four(const Plain &s, f4 x, f4) { return x * s.factor; }
};

// x * factor + m.
RF_DEVICE f4 rf_fma4(f4 x, float factor, f4 m) {
    return f4{rf_fma(x.x, factor, m.x), rf_fma(x.y, factor, m.y), rf_fma(x.z, factor, m.z), rf_fma(x.w, factor, m.w)};
}

struct Masked {
    static constexpr bool has_sink = false;
    float factor;
    const float *mask;
    RF_DEVICE float at(const Masked &s, float x, u32 c) { return rf_fma(x, s.factor, s.mask[c]); }
    RF_DEVICE bool wide(const Masked &s) { return rf_wide(s.mask, 0); }
    RF_DEVICE f4 read(const Masked &s, u32 c) { return *(const f4_wide *)(s.mask + c); }
    RF_DEVICE f4 four(const Masked &s, f4 x, f4 m) { return rf_fma4(x, s.factor, m); }
};

// x * factor + slope * mask, and one more logit for the row, the sink, that takes weight and has no column (-inf: none). M is a type of
// quant.h. Whether there is a mask is a flag of its own: of a pointer that may be null the compiler does not know that it is to global memory,
// and reads through it by flat accesses.
template <class M> struct Biased {
    static constexpr bool has_sink = true;
    float factor, slope, sink;
    const u8 *mask;
    bool has_mask;
    RF_DEVICE float at(const Biased &s, float x, u32 c) {
        return s.has_mask ? rf_fma(x, s.factor, s.slope * M::one(s.mask, c)) : x * s.factor;
    }
    RF_DEVICE bool wide(const Biased &) { return true; }
    RF_DEVICE f4 read(const Biased &s, u32 c) { return s.has_mask ? M::four(s.mask, c / 4) * s.slope : rf_splat(0.0f); }
    RF_DEVICE f4 four(const Biased &s, f4 x, f4 m) { return s.has_mask ? rf_fma4(x, s.factor, m) : x * s.factor; }
};

// Softmax over the first `end` of `cols` columns; the others become 0 (they are what a causal mask hides).
template <class Team, class Scores> RF_DEVICE void softmax_held(const float *in, float *out, u32 cols, u32 end, Scores scores) {
    typedef typename HeldBy<Team>::Row Row;
    Row row;
    Row::load(row, in, end);
    float top = -RF_INF;
    auto read = [&](u32 c) { return Scores::read(scores, c); };
    Row::each(row, end, read, [&](f4 &v, f4 m, u32 c) {
        v = rf_only4(Scores::four(scores, v, m), rf_left4(c, end), -RF_INF);
        top = rf_max(top, rf_max4(v));
    });
    top = Team::max(top);
    if constexpr (Scores::has_sink) top = rf_max(top, scores.sink);
    if (top == -RF_INF) top = 0.0f;
    float sum = 0.0f;
    Row::each(row, end, [&](f4 &v, u32) {
        v = f4{rf_exp(v.x - top), rf_exp(v.y - top), rf_exp(v.z - top), rf_exp(v.w - top)};
        sum += rf_sum4(v);
    });
    sum = Team::sum(sum);
    if constexpr (Scores::has_sink) sum += rf_exp(scores.sink - top);
    float inverse = sum == 0.0f ? 0.0f : rf_rcp(sum);
    Row::each(row, cols, [&](f4 &v, u32 c) { *(f4_wide *)(out + c) = v * inverse; });
}

template <class Team, class Scores>
RF_DEVICE void softmax_row(const float *x, float *y, u64 row, u32 cols, u32 end, Scores scores) {
    const float *in = x + row * cols;
    float *out = y + row * cols;
    if (HeldBy<Team>::Row::fits(x, y, cols) && Scores::wide(scores)) return softmax_held<Team>(in, out, cols, end, scores);
    float top = -RF_INF;
    for (u32 c = Team::lane(); c < end; c += Team::width) top = rf_max(top, Scores::at(scores, in[c], c));
    top = Team::max(top);
    if constexpr (Scores::has_sink) top = rf_max(top, scores.sink);
    if (top == -RF_INF) top = 0.0f;
    float sum = 0.0f;
    for (u32 c = Team::lane(); c < end; c += Team::width) sum += rf_exp(Scores::at(scores, in[c], c) - top);
    sum = Team::sum(sum);
    if constexpr (Scores::has_sink) sum += rf_exp(scores.sink - top);
    float inverse = sum == 0.0f ? 0.0f : rf_rcp(sum);
    for (u32 c = Team::lane(); c < end; c += Team::width) out[c] = rf_exp(Scores::at(scores, in[c], c) - top) * inverse;
    for (u32 c = end + Team::lane(); c < cols; c += Team::width) out[c] = 0.0f;
}

template <class Team> RF_DEVICE void plain(const float *x, float *y, u32 rows, u32 cols, float scale) {
    u32 row = Team::row();
    if (row >= rows) return;
    softmax_row<Team>(x, y, row, cols, cols, Plain{scale});
}

template <class Team>
RF_DEVICE void causal(const float *x, float *y, u32 rows, u32 seq_q, u32 seq_k, i32 offset, float scale) {
    u32 row = Team::row();
    if (row >= rows) return;
    i64 end = (i64)(row % seq_q) + offset + 1;
    end = end <= 0 ? 0 : (end >= (i64)seq_k ? seq_k : end);
    softmax_row<Team>(x, y, row, seq_k, (u32)end, Plain{scale});
}

// grid = (planes, blocks of rows of a plane, as many such grids as that needs): the rows of one query come together, because most masks
// are shared by the heads, and no division stands before the first load.
template <class Team>
RF_DEVICE void masked(const float *x, const float *mask, float *y, u32 heads, u32 seq_q, u32 seq_k, RfStrides strides, float scale) {
    u32 plane = rf_block_x(), query = Team::row_of(rf_block_z() * RF_MASKED_BLOCKS + rf_block_y());
    if (query >= seq_q) return;
    const float *m = mask + rf_plane(strides, plane / heads, plane % heads) + query * strides.row;
    softmax_row<Team>(x, y, (u64)plane * seq_q + query, seq_k, seq_k, Masked{scale, m});
}

RF_KERNEL(RF_ROW_BLOCK) softmax_rows(const float *x, float *y, u32 rows, u32 cols, float scale) {
    plain<Team32>(x, y, rows, cols, scale);
}
RF_KERNEL(RF_ROW_BLOCK) softmax_block(const float *x, float *y, u32 rows, u32 cols, float scale) {
    plain<Team256>(x, y, rows, cols, scale);
}
RF_KERNEL(RF_ROW_BLOCK)
softmax_causal_rows(const float *x, float *y, u32 rows, u32 seq_q, u32 seq_k, i32 offset, float scale) {
    causal<Team32>(x, y, rows, seq_q, seq_k, offset, scale);
}
RF_KERNEL(RF_ROW_BLOCK)
softmax_causal_block(const float *x, float *y, u32 rows, u32 seq_q, u32 seq_k, i32 offset, float scale) {
    causal<Team256>(x, y, rows, seq_q, seq_k, offset, scale);
}
RF_KERNEL(RF_ROW_BLOCK)
softmax_masked_rows(const float *x, const float *mask, float *y, u32 heads, u32 seq_q, u32 seq_k, RfStrides mask_strides, float scale) {
    masked<Team32>(x, mask, y, heads, seq_q, seq_k, mask_strides, scale);
}
RF_KERNEL(RF_ROW_BLOCK)
softmax_masked_block(const float *x, const float *mask, float *y, u32 heads, u32 seq_q, u32 seq_k, RfStrides mask_strides, float scale) {
    masked<Team256>(x, mask, y, heads, seq_q, seq_k, mask_strides, scale);
}

// Where a biased row's mask and slope come from: matrices [.., heads] of `per` rows, masks [outer, inner] of mask_rows rows each, which
// divide the matrices and repeat.
struct Bias {
    u32 per, heads, outer, inner, mask_rows, power;
    float scale, max_bias;
};

template <class Team, class M>
RF_DEVICE void biased(const float *x, const u8 *mask, const float *sinks, float *y, u32 rows, u32 cols, const Bias &b) {
    u32 row = Team::row();
    if (row >= rows) return;
    u32 matrix = row / b.per, head = matrix % b.heads;
    u64 mask_row = (u64)((matrix / b.heads % b.outer) * b.inner + head % b.inner) * b.mask_rows + row % b.per;
    float sink = sinks ? sinks[head] : -RF_INF;
    Biased<M> scores{b.scale, rf_slope(b.max_bias, b.power, head), sink, mask + mask_row * cols * M::bytes, mask != nullptr};
    softmax_row<Team>(x, y, row, cols, cols, scores);
}

#define RF_BIASED(name, M, team, Team)                                                                                             \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    softmax_biased_##name##_##team(const float *x, const u8 *mask, const float *sinks, float *y, u32 rows, u32 cols, Bias bias) {  \
        biased<Team, M>(x, mask, sinks, y, rows, cols, bias);                                                                      \
    }
RF_BIASED(f32, F32, rows, Team32)
RF_BIASED(f32, F32, block, Team256)
RF_BIASED(f16, F16, rows, Team32)
RF_BIASED(f16, F16, block, Team256)
