// Functions of one element, of two elements, and gated linear units, all of the table in include/elementwise.h: kernels with the name of a function, which
// models run in every layer, and kernels that take a function's number, the same for a whole launch.
//
// Gated units: Shazeer, "GLU Variants Improve Transformer", 2020; the order of the operands is that of LLaMA and Qwen. GELU: Hendrycks and Gimpel,
// "Gaussian Error Linear Units", 2016.
#include "include/elementwise.h"
#include "include/grid.h"
#include "include/team.h"

// y = f(x). y may be x.
template <class F> RF_DEVICE void of_one(const float *x, float *y, u64 n, F f) {
    rf_grid_begin();
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, f(rf_load4(x + i, count)), count);
}
// y = f(a, b), element by element. y may be one of the operands.
template <class F> RF_DEVICE void of_two(const float *a, const float *b, float *y, u64 n, F f) {
    rf_grid_begin();
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, f(rf_load4(a + i, count), rf_load4(b + i, count)), count);
}
// y[r, c] = f(x[r, c], vector[c]). y may be x.
template <class F> RF_DEVICE void of_rows(const float *x, const float *vector, float *y, u32 rows, u32 cols, F f) {
    rf_grid_begin();
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u64 base = (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(y + base + c, f(rf_load4(x + base + c, count), rf_load4(vector + c, count)), count);
    }
}

#define RF_OF_ONE(name)                                                                                                                \
    RF_KERNEL(RF_FLAT_BLOCK) name(const float *x, float *y, u64 n) {                                                                   \
        of_one(x, y, n, [](f4 v) __attribute__((always_inline)) { return rf_##name##_4(v); });                                         \
    }
#define RF_OF_TWO(name, a, b)                                                                                                          \
    RF_KERNEL(RF_FLAT_BLOCK) name(const float *a, const float *b, float *y, u64 n) {                                                   \
        of_two(a, b, y, n, [](f4 v, f4 w) __attribute__((always_inline)) { return rf_##name##_4(v, w); });                             \
    }
#define RF_OF_ROWS(name, function, vector)                                                                                             \
    RF_KERNEL(RF_ROW_BLOCK) name(const float *x, const float *vector, float *y, u32 rows, u32 cols) {                                  \
        of_rows(x, vector, y, rows, cols, [](f4 v, f4 w) __attribute__((always_inline)) { return rf_##function##_4(v, w); });          \
    }

RF_OF_ONE(silu)
RF_OF_ONE(gelu_tanh)
RF_OF_ONE(gelu_erf)
RF_OF_TWO(add, a, b)
RF_OF_TWO(mul, a, b)
RF_OF_TWO(swiglu, gate, up)
RF_OF_TWO(geglu, gate, up)
RF_OF_ROWS(add_row_bias, add, bias)
RF_OF_ROWS(mul_row, mul, factor)

RF_KERNEL(RF_FLAT_BLOCK) scale(const float *x, float *y, u64 n, float factor) {
    of_one(x, y, n, [=](f4 v) __attribute__((always_inline)) { return rf_scale_4(v, factor); });
}

// Keeps x between -cap and cap, as Gemma 2 does with its logits.
RF_KERNEL(RF_FLAT_BLOCK) softcap(const float *x, float *y, u64 n, float cap) {
    of_one(x, y, n, [=](f4 v) __attribute__((always_inline)) { return rf_softcap_4(v, cap, 1.0f / cap); });
}

RF_KERNEL(RF_FLAT_BLOCK) map(const float *x, float *y, u64 n, u32 op, float a, float b) {
    of_one(x, y, n, [=](f4 v) __attribute__((always_inline)) { return rf_mapped(op, v, a, b); });
}

RF_KERNEL(RF_FLAT_BLOCK) binary(const float *a, const float *b, float *y, u64 n, u32 op) {
    of_two(a, b, y, n, [=](f4 v, f4 w) __attribute__((always_inline)) { return rf_joined(op, v, w); });
}

// Rows [n0, n1, n2] of a and [m0, m1, m2] of b, whose rows have m3 columns. Each m divides its n, and of the columns.
struct Repeat {
    u32 n1, n2, m0, m1, m2, m3;
};

// y = f(a, b) with b repeated to the shape of a, [n0, n1, n2, cols]. y may be a.
RF_KERNEL(RF_ROW_BLOCK) binary_repeat(const float *a, const float *b, float *y, u32 rows, u32 cols, Repeat r, u32 op) {
    rf_grid_begin();
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 i2 = t.row % r.n2, outer = t.row / r.n2;
    u32 i1 = outer % r.n1, i0 = outer / r.n1;
    const float *with = b + (((u64)(i0 % r.m0) * r.m1 + i1 % r.m1) * r.m2 + i2 % r.m2) * r.m3;
    u64 base = (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        f4 v;
        if (r.m3 == cols) v = rf_load4(with + c, count);
        else v = f4{with[c % r.m3], with[(c + 1) % r.m3], with[(c + 2) % r.m3], with[(c + 3) % r.m3]};
        rf_store4(y + base + c, rf_joined(op, rf_load4(a + base + c, count), v), count);
    }
}

// y[r, c] = f(gate[r * gate_stride + c]) * up[r * up_stride + c]. y may be an operand whose rows lie as its own do.
RF_KERNEL(RF_ROW_BLOCK)
glu(const float *gate, const float *up, float *y, u32 rows, u32 cols, u64 gate_stride, u64 up_stride, u32 op) {
    rf_grid_begin();
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    const float *g = gate + t.row * gate_stride, *u = up + t.row * up_stride;
    float *out = y + (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(out + c, rf_gate(op, rf_load4(g + c, count)) * rf_load4(u + c, count), count);
    }
}
