// Functions of one element, of two elements of which the second operand repeats, and gated linear units: an op number, the same for a
// whole launch, says which. The numbers are those of Map, Binary and Gate in crates/rocmforge-kernels.
#include "include/functions.h"
#include "include/team.h"

template <class F> RF_DEVICE f4 each(f4 v, F f) { return f4{f(v.x), f(v.y), f(v.z), f(v.w)}; }

RF_DEVICE f4 mapped(u32 op, f4 v, float a, float b) {
    switch (op) {
    case 0: return each(v, [](float x) { return rf_abs(x); });
    case 1: return each(v, [](float x) { return rf_sign(x); });
    case 2: return -v;
    case 3: return each(v, [](float x) { return x > 0.0f ? 1.0f : 0.0f; });
    case 4: return each(v, [](float x) { return rf_tanh(x); });
    case 5: return each(v, [](float x) { return x > 0.0f ? x : rf_expm1(x); });
    case 6: return each(v, [](float x) { return rf_max(x, 0.0f); });
    case 7: return each(v, [](float x) { return rf_sigmoid(x); });
    case 8: return each(v, [](float x) { return rf_gelu_tanh(x); });
    case 9: return each(v, [](float x) { return rf_gelu_erf(x); });
    case 10: return each(v, [](float x) { return x * rf_sigmoid(1.702f * x); });
    case 11: return each(v, [](float x) { return rf_silu(x); });
    case 12: return each(v, [](float x) { return x * rf_hard_sigmoid(x); });
    case 13: return each(v, [](float x) { return rf_hard_sigmoid(x); });
    case 14: return each(v, [](float x) { return rf_exp_exact(x); });
    case 15: return each(v, [](float x) { return rf_expm1(x); });
    case 16: return each(v, [](float x) { return rf_softplus(x); });
    case 17: return each(v, [](float x) { return __builtin_floorf(x); });
    case 18: return each(v, [](float x) { return __builtin_ceilf(x); });
    case 19: return each(v, [](float x) { return __builtin_roundf(x); });
    case 20: return each(v, [](float x) { return __builtin_truncf(x); });
    case 21: return v * v;
    case 22: return each(v, [](float x) { return __builtin_sqrtf(x); });
    case 23: return each(v, [](float x) { return rf_log(x); });
    case 24: return each(v, [](float x) { return rf_sine(x, 0); });
    case 25: return each(v, [](float x) { return rf_sine(x, 1); });
    case 26: return each(v, [=](float x) { return rf_clamp(x, a, b); });
    default: return v * a + b;
    }
}

// y = f(x), with the parameters a and b of CLAMP (26) and of x * a + b (27). y may be x.
RF_KERNEL(RF_FLAT_BLOCK) map(const float *x, float *y, u64 n, u32 op, float a, float b) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, mapped(op, rf_load4(x + i, count), a, b), count);
}

RF_DEVICE f4 joined(u32 op, f4 a, f4 b) {
    switch (op) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    default: return a / b;
    }
}

// y = f(a, b), element by element. y may be one of the operands.
RF_KERNEL(RF_FLAT_BLOCK) binary(const float *a, const float *b, float *y, u64 n, u32 op) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, joined(op, rf_load4(a + i, count), rf_load4(b + i, count)), count);
}

// Rows [n0, n1, n2] of a and [m0, m1, m2] of b, whose rows have m3 columns. Each m divides its n, and of the columns.
struct Repeat {
    u32 n1, n2, m0, m1, m2, m3;
};

// y = f(a, b) with b repeated to the shape of a, [n0, n1, n2, cols]. y may be a.
RF_KERNEL(RF_ROW_BLOCK) binary_repeat(const float *a, const float *b, float *y, u32 rows, u32 cols, Repeat r, u32 op) {
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
        rf_store4(y + base + c, joined(op, rf_load4(a + base + c, count), v), count);
    }
}

RF_DEVICE f4 gate_of(u32 op, f4 v) {
    switch (op) {
    case 0: return each(v, [](float x) { return rf_max(x, 0.0f); });
    case 1: return each(v, [](float x) { return rf_gelu_tanh(x); });
    case 2: return each(v, [](float x) { return rf_silu(x); });
    case 3: return each(v, [](float x) { return rf_gelu_erf(x); });
    default: return each(v, [](float x) { return x * rf_sigmoid(1.702f * x); });
    }
}

// y[r, c] = f(gate[r * gate_stride + c]) * up[r * up_stride + c]. y may be an operand whose rows lie as its own do.
RF_KERNEL(RF_ROW_BLOCK)
glu(const float *gate, const float *up, float *y, u32 rows, u32 cols, u64 gate_stride, u64 up_stride, u32 op) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    const float *g = gate + t.row * gate_stride, *u = up + t.row * up_stride;
    float *out = y + (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(out + c, gate_of(op, rf_load4(g + c, count)) * rf_load4(u + c, count), count);
    }
}
