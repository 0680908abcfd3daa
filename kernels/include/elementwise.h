// Table of functions: every function of one element, of two elements and of a gated unit, once. Kernels with a function's name and kernels that take
// its number come from the same line (elementwise.hip).
#pragma once
#include "functions.h"

// Functions of one element that functions.h has no name for.
RF_ARITHMETIC float rf_step(float x) { return x > 0.0f ? 1.0f : 0.0f; }
RF_ARITHMETIC float rf_elu(float x) { return x > 0.0f ? x : rf_expm1(x); }
RF_ARITHMETIC float rf_relu(float x) { return rf_max(x, 0.0f); }
RF_ARITHMETIC float rf_gelu_quick(float x) { return x * rf_sigmoid(1.702f * x); }
RF_ARITHMETIC float rf_hard_swish(float x) { return x * rf_hard_sigmoid(x); }
RF_ARITHMETIC float rf_floor(float x) { return __builtin_floorf(x); }
RF_ARITHMETIC float rf_ceil(float x) { return __builtin_ceilf(x); }
RF_ARITHMETIC float rf_round(float x) { return __builtin_roundf(x); }
RF_ARITHMETIC float rf_trunc(float x) { return __builtin_truncf(x); }
RF_ARITHMETIC float rf_sqrt(float x) { return __builtin_sqrtf(x); }
RF_ARITHMETIC float rf_sin(float x) { return rf_sine(x, 0); }
RF_ARITHMETIC float rf_cos(float x) { return rf_sine(x, 1); }

// A function of one element of each of four, with the same parameters.
template <auto F, class... P> RF_ARITHMETIC f4 rf_lanes(f4 v, P... p) { return f4{F(v.x, p...), F(v.y, p...), F(v.z, p...), F(v.w, p...)}; }

// Functions of x, four elements, with the parameters a and b: NUMBERED(number, name, formula) are those of `map`, with the numbers of Map in
// crates/rocmforge-kernels, LAST the one with the highest; OWN(name, formula) have a kernel of their own only.
//
// a and b are the limits of clamp, factor and summand of scale_bias; a is the factor of scale; a is the cap of softcap, b is 1 / a.
#define RF_FUNCTIONS(NUMBERED, LAST, OWN)                                                                                              \
    NUMBERED(0, abs, rf_lanes<rf_abs>(x))                                                                                              \
    NUMBERED(1, sgn, rf_lanes<rf_sign>(x))                                                                                             \
    NUMBERED(2, neg, -x)                                                                                                               \
    NUMBERED(3, step, rf_lanes<rf_step>(x))                                                                                            \
    NUMBERED(4, tanh, rf_lanes<rf_tanh>(x))                                                                                            \
    NUMBERED(5, elu, rf_lanes<rf_elu>(x))                                                                                              \
    NUMBERED(6, relu, rf_lanes<rf_relu>(x))                                                                                            \
    NUMBERED(7, sigmoid, rf_lanes<rf_sigmoid>(x))                                                                                      \
    NUMBERED(8, gelu_tanh, rf_lanes<rf_gelu_tanh>(x))                                                                                  \
    NUMBERED(9, gelu_erf, rf_lanes<rf_gelu_erf>(x))                                                                                    \
    NUMBERED(10, gelu_quick, rf_lanes<rf_gelu_quick>(x))                                                                               \
    NUMBERED(11, silu, x * rf_lanes<rf_sigmoid>(x))                                                                                    \
    NUMBERED(12, hard_swish, rf_lanes<rf_hard_swish>(x))                                                                               \
    NUMBERED(13, hard_sigmoid, rf_lanes<rf_hard_sigmoid>(x))                                                                           \
    NUMBERED(14, exp, rf_lanes<rf_exp_exact>(x))                                                                                       \
    NUMBERED(15, expm1, rf_lanes<rf_expm1>(x))                                                                                         \
    NUMBERED(16, softplus, rf_lanes<rf_softplus>(x))                                                                                   \
    NUMBERED(17, floor, rf_lanes<rf_floor>(x))                                                                                         \
    NUMBERED(18, ceil, rf_lanes<rf_ceil>(x))                                                                                           \
    NUMBERED(19, round, rf_lanes<rf_round>(x))                                                                                         \
    NUMBERED(20, trunc, rf_lanes<rf_trunc>(x))                                                                                         \
    NUMBERED(21, sqr, x * x)                                                                                                           \
    NUMBERED(22, sqrt, rf_lanes<rf_sqrt>(x))                                                                                           \
    NUMBERED(23, log, rf_lanes<rf_log>(x))                                                                                             \
    NUMBERED(24, sin, rf_lanes<rf_sin>(x))                                                                                             \
    NUMBERED(25, cos, rf_lanes<rf_cos>(x))                                                                                             \
    NUMBERED(26, clamp, rf_lanes<rf_clamp>(x, a, b))                                                                                   \
    LAST(27, scale_bias, x *a + b)                                                                                                     \
    OWN(scale, x *a)                                                                                                                   \
    OWN(softcap, rf_lanes<rf_softcap>(x, a, b))

// Functions of two elements a and b: the numbers of Binary in crates/rocmforge-kernels.
#define RF_FUNCTIONS_OF_TWO(NUMBERED, LAST)                                                                                            \
    NUMBERED(0, add, a + b)                                                                                                            \
    NUMBERED(1, sub, a - b)                                                                                                            \
    NUMBERED(2, mul, a *b)                                                                                                             \
    LAST(3, div, a / b)

// Gated units: NUMBERED(number, name, function) is the named function of the gate, times the other operand; the numbers of GluKind in
// crates/rocmforge-kernels.
#define RF_GATES(NUMBERED, LAST)                                                                                                       \
    NUMBERED(0, reglu, relu)                                                                                                           \
    NUMBERED(1, geglu, gelu_tanh)                                                                                                      \
    NUMBERED(2, swiglu, silu)                                                                                                          \
    NUMBERED(3, geglu_erf, gelu_erf)                                                                                                   \
    LAST(4, geglu_quick, gelu_quick)

// Each function: rf_{name}_4.
#define RF_OF_FOUR(number, name, formula)                                                                                              \
    RF_ARITHMETIC f4 rf_##name##_4(f4 x, [[maybe_unused]] float a = 0.0f, [[maybe_unused]] float b = 0.0f) { return formula; }
#define RF_OWN_OF_FOUR(name, formula) RF_OF_FOUR(0, name, formula)
#define RF_TWO_OF_FOUR(number, name, formula)                                                                                          \
    RF_ARITHMETIC f4 rf_##name##_4(f4 a, f4 b) { return formula; }
#define RF_GATE_OF_FOUR(number, name, function)                                                                                        \
    RF_ARITHMETIC f4 rf_##name##_4(f4 gate, f4 up) { return rf_##function##_4(gate) * up; }

RF_FUNCTIONS(RF_OF_FOUR, RF_OF_FOUR, RF_OWN_OF_FOUR)
RF_FUNCTIONS_OF_TWO(RF_TWO_OF_FOUR, RF_TWO_OF_FOUR)
RF_GATES(RF_GATE_OF_FOUR, RF_GATE_OF_FOUR)

// The function with a number.
#define RF_CASE(number, name, formula)                                                                                                 \
    case number: return rf_##name##_4(v, a, b);
#define RF_CASE_LAST(number, name, formula)                                                                                            \
    default: return rf_##name##_4(v, a, b);
#define RF_NO_CASE(name, formula)
RF_ARITHMETIC f4 rf_mapped(u32 op, f4 v, float a, float b) {
    switch (op) { RF_FUNCTIONS(RF_CASE, RF_CASE_LAST, RF_NO_CASE) }
}
#define RF_CASE_OF_TWO(number, name, formula)                                                                                          \
    case number: return rf_##name##_4(a, b);
#define RF_CASE_OF_TWO_LAST(number, name, formula)                                                                                     \
    default: return rf_##name##_4(a, b);
RF_ARITHMETIC f4 rf_joined(u32 op, f4 a, f4 b) {
    switch (op) { RF_FUNCTIONS_OF_TWO(RF_CASE_OF_TWO, RF_CASE_OF_TWO_LAST) }
}
#define RF_CASE_OF_GATE(number, name, function)                                                                                        \
    case number: return rf_##function##_4(gate);
#define RF_CASE_OF_GATE_LAST(number, name, function)                                                                                   \
    default: return rf_##function##_4(gate);
RF_ARITHMETIC f4 rf_gate(u32 op, f4 gate) {
    switch (op) { RF_GATES(RF_CASE_OF_GATE, RF_CASE_OF_GATE_LAST) }
}
