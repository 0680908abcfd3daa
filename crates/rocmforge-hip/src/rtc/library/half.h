// Floats of 16 bits: `__half`, pairs of them, and their functions. The macros make the same of bfloat16 (`bfloat16.h`). Names are HIP's.
// Every operation is done in f32 and rounded once more, which gives the nearest 16 bits for sums, products, quotients and roots.
#pragma once

#define RF_SMALL static __host__ __device__ inline __attribute__((always_inline))
#define RF_SMALL_MEMBER __host__ __device__ constexpr __attribute__((always_inline))
#define RF_EACH_NUMBER(make, ...)                                                                                        \
    make(short, __VA_ARGS__) make(unsigned short, __VA_ARGS__) make(int, __VA_ARGS__) make(unsigned, __VA_ARGS__)        \
    make(long, __VA_ARGS__) make(unsigned long, __VA_ARGS__) make(long long, __VA_ARGS__) make(unsigned long long, __VA_ARGS__)

// An integer as f32. Bits that it has no place for are as good as its last one, where the number is rounded to 16 bits.
template <typename N> RF_SMALL_MEMBER float __rocmforge_integer(N x) {
    unsigned long long size = x < 0 ? 0 - (unsigned long long)x : (unsigned long long)x;
    if (size >> 24) {
        int more = 40 - __builtin_clzll(size);
        size = (size >> more | ((size & ((1ull << more) - 1)) != 0)) << more;
    }
    return x < 0 ? -(float)size : (float)size;
}

// Members of a number, of a type with these bits.
#define RF_FROM_NUMBER(number, type, storage) RF_SMALL_MEMBER type(number x) : data((storage)__rocmforge_integer(x)) {}
#define RF_TO_NUMBER(number, type, storage) RF_SMALL_MEMBER operator number() const { return (number)data; }
#define RF_SMALL_OPERATOR(type, of)                                                                                      \
    friend RF_SMALL_MEMBER type operator of(const type& x, const type& y) { return type((float)x.data of (float)y.data); } \
    RF_SMALL_MEMBER type& operator of##=(const type& y) { return *this = *this of y; }
#define RF_SMALL_COMPARISON(type, of)                                                                                    \
    friend RF_SMALL_MEMBER bool operator of(const type& x, const type& y) { return (float)x.data of (float)y.data; }
#define RF_SMALL_STEPS(type)                                                                                             \
    RF_SMALL_MEMBER type& operator++() { return *this += type(1); }                                                      \
    RF_SMALL_MEMBER type& operator--() { return *this -= type(1); }                                                      \
    RF_SMALL_MEMBER type operator++(int) {                                                                               \
        type old = *this;                                                                                                \
        ++*this;                                                                                                         \
        return old;                                                                                                      \
    }                                                                                                                    \
    RF_SMALL_MEMBER type operator--(int) {                                                                               \
        type old = *this;                                                                                                \
        --*this;                                                                                                         \
        return old;                                                                                                      \
    }
#define RF_SMALL_FLOAT(type, storage)                                                                                    \
    struct type##_raw {                                                                                                  \
        unsigned short x;                                                                                                \
    };                                                                                                                   \
    struct type {                                                                                                        \
        storage data;                                                                                                    \
        type() = default;                                                                                                \
        RF_SMALL_MEMBER type(storage x) : data(x) {}                                                                     \
        RF_SMALL_MEMBER type(const type##_raw& x) : data(__builtin_bit_cast(storage, x.x)) {}                            \
        RF_SMALL_MEMBER type(float x) : data((storage)x) {}                                                              \
        RF_SMALL_MEMBER type(double x) : data((storage)x) {}                                                             \
        RF_EACH_NUMBER(RF_FROM_NUMBER, type, storage)                                                                    \
        RF_TO_NUMBER(float, type, storage)                                                                               \
        RF_TO_NUMBER(double, type, storage)                                                                              \
        RF_EACH_NUMBER(RF_TO_NUMBER, type, storage)                                                                      \
        RF_SMALL_MEMBER operator storage() const { return data; }                                                        \
        RF_SMALL_MEMBER operator bool() const { return (float)data != 0; }                                               \
        RF_SMALL_MEMBER operator type##_raw() const { return {__builtin_bit_cast(unsigned short, data)}; }               \
        RF_SMALL_OPERATOR(type, +)                                                                                       \
        RF_SMALL_OPERATOR(type, -)                                                                                       \
        RF_SMALL_OPERATOR(type, *)                                                                                       \
        RF_SMALL_OPERATOR(type, /)                                                                                       \
        RF_SMALL_COMPARISON(type, ==)                                                                                    \
        RF_SMALL_COMPARISON(type, !=)                                                                                    \
        RF_SMALL_COMPARISON(type, <)                                                                                     \
        RF_SMALL_COMPARISON(type, <=)                                                                                    \
        RF_SMALL_COMPARISON(type, >)                                                                                     \
        RF_SMALL_COMPARISON(type, >=)                                                                                    \
        RF_SMALL_MEMBER type operator+() const { return *this; }                                                         \
        RF_SMALL_MEMBER type operator-() const {                                                                         \
            return type(__builtin_bit_cast(storage, (unsigned short)(__builtin_bit_cast(unsigned short, data) ^ 0x8000))); \
        }                                                                                                                \
        RF_SMALL_STEPS(type)                                                                                             \
    };

// Members of a pair.
#define RF_PAIR_OPERATOR(type, of)                                                                                       \
    friend RF_SMALL_MEMBER type operator of(const type& a, const type& b) { return type(a.x of b.x, a.y of b.y); }       \
    RF_SMALL_MEMBER type& operator of##=(const type& b) { return *this = *this of b; }
#define RF_PAIR_COMPARISON(type, of)                                                                                     \
    friend RF_SMALL_MEMBER bool operator of(const type& a, const type& b) { return a.x of b.x && a.y of b.y; }
#define RF_SMALL_PAIR(type, one)                                                                                         \
    struct type##_raw {                                                                                                  \
        unsigned short x, y;                                                                                             \
    };                                                                                                                   \
    struct alignas(4) type {                                                                                             \
        one x, y;                                                                                                        \
        type() = default;                                                                                                \
        RF_SMALL_MEMBER type(const one& x, const one& y) : x(x), y(y) {}                                                 \
        RF_SMALL_MEMBER type(const type##_raw& raw) : x(one##_raw{raw.x}), y(one##_raw{raw.y}) {}                        \
        RF_SMALL_MEMBER operator type##_raw() const { return {((one##_raw)x).x, ((one##_raw)y).x}; }                     \
        RF_PAIR_OPERATOR(type, +)                                                                                        \
        RF_PAIR_OPERATOR(type, -)                                                                                        \
        RF_PAIR_OPERATOR(type, *)                                                                                        \
        RF_PAIR_OPERATOR(type, /)                                                                                        \
        RF_PAIR_COMPARISON(type, ==)                                                                                     \
        RF_PAIR_COMPARISON(type, <)                                                                                      \
        RF_PAIR_COMPARISON(type, <=)                                                                                     \
        RF_PAIR_COMPARISON(type, >)                                                                                      \
        RF_PAIR_COMPARISON(type, >=)                                                                                     \
        friend RF_SMALL_MEMBER bool operator!=(const type& a, const type& b) { return !(a == b); }                       \
        RF_SMALL_MEMBER type operator+() const { return *this; }                                                         \
        RF_SMALL_MEMBER type operator-() const { return type(-x, -y); }                                                  \
        RF_SMALL_MEMBER type& operator++() { return *this += type(one(1), one(1)); }                                     \
        RF_SMALL_MEMBER type& operator--() { return *this -= type(one(1), one(1)); }                                     \
    };

// The neighbour towards zero (0), up (1) or down (-1), unless the nearest number is there already.
template <typename T, typename N> RF_SMALL T __rocmforge_directed(N x, int way) {
    T near(x);
    N back = (N)near;
    unsigned short bits = __builtin_bit_cast(unsigned short, near);
    bool negative = bits >> 15;
    bool low = back < x && (way > 0 || way == 0 && x < 0), high = back > x && (way < 0 || way == 0 && x > 0);
    if (low) bits += negative ? -1 : 1;
    if (high && bits == 0) bits = 0x8000;
    if (high) bits += negative || bits == 0x8000 ? 1 : -1;
    return __builtin_bit_cast(T, bits);
}
#define RF_SMALL_OF_INTEGER(name, number, type, word)                                                                    \
    RF_SMALL type __##name##2##word##_rn(number x) { return type(x); }                   \
    RF_SMALL type __##name##2##word##_rz(number x) { return __rocmforge_directed<type>(__rocmforge_integer(x), 0); }               \
    RF_SMALL type __##name##2##word##_ru(number x) { return __rocmforge_directed<type>(__rocmforge_integer(x), 1); }               \
    RF_SMALL type __##name##2##word##_rd(number x) { return __rocmforge_directed<type>(__rocmforge_integer(x), -1); }              \
    RF_SMALL number __##word##2##name##_rn(type x) { return (number)__builtin_rintf((float)x); }                         \
    RF_SMALL number __##word##2##name##_rz(type x) { return (number)(float)x; }                                          \
    RF_SMALL number __##word##2##name##_ru(type x) { return (number)__builtin_ceilf((float)x); }                         \
    RF_SMALL number __##word##2##name##_rd(type x) { return (number)__builtin_floorf((float)x); }

#define RF_SMALL_CONVERSIONS(type, word)                                                                                 \
    RF_SMALL type __float2##word(float x) { return type(x); }                                                            \
    RF_SMALL type __float2##word##_rn(float x) { return type(x); }                                                       \
    RF_SMALL type __float2##word##_rz(float x) { return __rocmforge_directed<type>(x, 0); }                              \
    RF_SMALL type __float2##word##_ru(float x) { return __rocmforge_directed<type>(x, 1); }                              \
    RF_SMALL type __float2##word##_rd(float x) { return __rocmforge_directed<type>(x, -1); }                             \
    RF_SMALL type __double2##word(double x) { return type(x); }                                                          \
    RF_SMALL float __##word##2float(type x) { return (float)x; }                                                         \
    RF_SMALL short __##word##_as_short(type x) { return __builtin_bit_cast(short, x); }                                  \
    RF_SMALL unsigned short __##word##_as_ushort(type x) { return __builtin_bit_cast(unsigned short, x); }               \
    RF_SMALL type __short_as_##word(short x) { return __builtin_bit_cast(type, x); }                                     \
    RF_SMALL type __ushort_as_##word(unsigned short x) { return __builtin_bit_cast(type, x); }                           \
    RF_SMALL_OF_INTEGER(short, short, type, word)                                                                        \
    RF_SMALL_OF_INTEGER(ushort, unsigned short, type, word)                                                              \
    RF_SMALL_OF_INTEGER(int, int, type, word)                                                                            \
    RF_SMALL_OF_INTEGER(uint, unsigned, type, word)                                                                      \
    RF_SMALL_OF_INTEGER(ll, long long, type, word)                                                                       \
    RF_SMALL_OF_INTEGER(ull, unsigned long long, type, word)                                                             \
    RF_SMALL type##2 __##word##2##word##2(type x) { return type##2(x, x); }                                              \
    RF_SMALL type##2 __halves2##word##2(type x, type y) { return type##2(x, y); }                                        \
    RF_SMALL type##2 __float2##word##2_rn(float x) { return type##2(type(x), type(x)); }                                 \
    RF_SMALL type##2 __floats2##word##2_rn(float x, float y) { return type##2(type(x), type(y)); }                       \
    RF_SMALL type##2 __float22##word##2_rn(float2 x) { return type##2(type(x.x), type(x.y)); }                           \
    RF_SMALL float2 __##word##22float2(type##2 x) { return make_float2((float)x.x, (float)x.y); }                        \
    RF_SMALL type __low2##word(type##2 x) { return x.x; }                                                                \
    RF_SMALL type __high2##word(type##2 x) { return x.y; }                                                               \
    RF_SMALL type##2 __low2##word##2(type##2 x) { return type##2(x.x, x.x); }                                            \
    RF_SMALL type##2 __high2##word##2(type##2 x) { return type##2(x.y, x.y); }                                           \
    RF_SMALL type##2 __lows2##word##2(type##2 x, type##2 y) { return type##2(x.x, y.x); }                                \
    RF_SMALL type##2 __highs2##word##2(type##2 x, type##2 y) { return type##2(x.y, y.y); }                               \
    RF_SMALL type##2 __lowhigh2highlow(type##2 x) { return type##2(x.y, x.x); }                                          \
    RF_SMALL float __low2float(type##2 x) { return (float)x.x; }                                                         \
    RF_SMALL float __high2float(type##2 x) { return (float)x.y; }

// A function of one number or several, and of each half of pairs.
#define RF_SMALL_1(type, name, pair_name, value)                                                                         \
    RF_DEVICE type name(type x) {                                                                                        \
        float a = (float)x;                                                                                              \
        return type(value);                                                                                              \
    }                                                                                                                    \
    RF_DEVICE type##2 pair_name(type##2 x) { return type##2(name(x.x), name(x.y)); }
#define RF_SMALL_2(type, name, pair_name, value)                                                                         \
    RF_DEVICE type name(type x, type y) {                                                                                \
        /* A sum of the result is another rounding: `_rn` promises it. */                                                \
        _Pragma("clang fp contract(off)") float a = (float)x, b = (float)y;                                              \
        return type(value);                                                                                              \
    }                                                                                                                    \
    RF_DEVICE type##2 pair_name(type##2 x, type##2 y) { return type##2(name(x.x, y.x), name(x.y, y.y)); }
#define RF_SMALL_3(type, name, pair_name, value)                                                                         \
    RF_DEVICE type name(type x, type y, type z) { return type(value); }                                                  \
    RF_DEVICE type##2 pair_name(type##2 x, type##2 y, type##2 z) { return type##2(name(x.x, y.x, z.x), name(x.y, y.y, z.y)); }
// A comparison: of numbers, of pairs as 1 and 0, whether it is true of both halves, and as masks.
#define RF_SMALL_COMPARE(type, name, holds)                                                                              \
    RF_DEVICE bool __h##name(type x, type y) {                                                                           \
        float a = (float)x, b = (float)y;                                                                                \
        return holds;                                                                                                    \
    }                                                                                                                    \
    RF_DEVICE type##2 __h##name##2(type##2 x, type##2 y) { return type##2(type(__h##name(x.x, y.x)), type(__h##name(x.y, y.y))); } \
    RF_DEVICE bool __hb##name##2(type##2 x, type##2 y) { return __h##name(x.x, y.x) && __h##name(x.y, y.y); }            \
    RF_DEVICE unsigned __h##name##2_mask(type##2 x, type##2 y) {                                                         \
        return (__h##name(x.x, y.x) ? 0xffffu : 0) | (__h##name(x.y, y.y) ? 0xffff0000u : 0);                            \
    }
#define RF_IS_NAN(a) ((a) != (a))
#define RF_SATURATED(a) __builtin_fminf(__builtin_fmaxf(a, 0.0f), 1.0f)

#define RF_SMALL_FUNCTIONS(type, fused)                                                                                  \
    RF_SMALL_2(type, __hadd, __hadd2, a + b)                                                                             \
    RF_SMALL_2(type, __hadd_rn, __hadd2_rn, a + b)                                                                       \
    RF_SMALL_2(type, __hsub, __hsub2, a - b)                                                                             \
    RF_SMALL_2(type, __hsub_rn, __hsub2_rn, a - b)                                                                       \
    RF_SMALL_2(type, __hmul, __hmul2, a * b)                                                                             \
    RF_SMALL_2(type, __hmul_rn, __hmul2_rn, a * b)                                                                       \
    RF_SMALL_2(type, __hdiv, __h2div, a / b)                                                                             \
    RF_SMALL_2(type, __hadd_sat, __hadd2_sat, RF_SATURATED(a + b))                                                       \
    RF_SMALL_2(type, __hsub_sat, __hsub2_sat, RF_SATURATED(a - b))                                                       \
    RF_SMALL_2(type, __hmul_sat, __hmul2_sat, RF_SATURATED(a * b))                                                       \
    RF_SMALL_2(type, __hmin, __hmin2, __builtin_fminf(a, b))                                                             \
    RF_SMALL_2(type, __hmax, __hmax2, __builtin_fmaxf(a, b))                                                             \
    RF_SMALL_2(type, __hmin_nan, __hmin2_nan, RF_IS_NAN(a) ? a : RF_IS_NAN(b) ? b : __builtin_fminf(a, b))               \
    RF_SMALL_2(type, __hmax_nan, __hmax2_nan, RF_IS_NAN(a) ? a : RF_IS_NAN(b) ? b : __builtin_fmaxf(a, b))               \
    RF_SMALL_3(type, __hfma, __hfma2, fused(x, y, z))                                                                    \
    RF_SMALL_3(type, __hfma_sat, __hfma2_sat, RF_SATURATED((float)type(fused(x, y, z))))                                 \
    RF_SMALL_3(type, __hfma_relu, __hfma2_relu, __builtin_fmaxf((float)type(fused(x, y, z)), 0.0f))                      \
    RF_SMALL_1(type, __hneg, __hneg2, -a)                                                                                \
    RF_SMALL_1(type, __habs, __habs2, __builtin_fabsf(a))                                                                \
    RF_SMALL_COMPARE(type, eq, a == b)                                                                                   \
    RF_SMALL_COMPARE(type, ne, !RF_IS_NAN(a) && !RF_IS_NAN(b) && a != b)                                                 \
    RF_SMALL_COMPARE(type, lt, a < b)                                                                                    \
    RF_SMALL_COMPARE(type, le, a <= b)                                                                                   \
    RF_SMALL_COMPARE(type, gt, a > b)                                                                                    \
    RF_SMALL_COMPARE(type, ge, a >= b)                                                                                   \
    RF_SMALL_COMPARE(type, equ, RF_IS_NAN(a) || RF_IS_NAN(b) || a == b)                                                  \
    RF_SMALL_COMPARE(type, neu, a != b)                                                                                  \
    RF_SMALL_COMPARE(type, ltu, !(a >= b))                                                                               \
    RF_SMALL_COMPARE(type, leu, !(a > b))                                                                                \
    RF_SMALL_COMPARE(type, gtu, !(a <= b))                                                                               \
    RF_SMALL_COMPARE(type, geu, !(a < b))                                                                                \
    RF_DEVICE bool __hisnan(type x) { return RF_IS_NAN((float)x); }                                                      \
    RF_DEVICE type##2 __hisnan2(type##2 x) { return type##2(type(__hisnan(x.x)), type(__hisnan(x.y))); }                 \
    RF_DEVICE int __hisinf(type x) { return __builtin_fabsf((float)x) == __builtin_inff() ? ((float)x < 0 ? -1 : 1) : 0; } \
    RF_DEVICE type##2 __hisinf2(type##2 x) { return type##2(type(__hisinf(x.x) != 0), type(__hisinf(x.y) != 0)); }       \
    RF_SMALL_1(type, htrunc, h2trunc, __builtin_truncf(a))                                                               \
    RF_SMALL_1(type, hceil, h2ceil, __builtin_ceilf(a))                                                                  \
    RF_SMALL_1(type, hfloor, h2floor, __builtin_floorf(a))                                                               \
    RF_SMALL_1(type, hrint, h2rint, __builtin_rintf(a))                                                                  \
    RF_SMALL_1(type, hsin, h2sin, sinf(a))                                                                               \
    RF_SMALL_1(type, hcos, h2cos, cosf(a))                                                                               \
    RF_SMALL_1(type, htanh, h2tanh, tanhf(a))                                                                            \
    RF_SMALL_1(type, hexp, h2exp, expf(a))                                                                               \
    RF_SMALL_1(type, hexp2, h2exp2, exp2f(a))                                                                            \
    RF_SMALL_1(type, hexp10, h2exp10, exp10f(a))                                                                         \
    RF_SMALL_1(type, hlog, h2log, logf(a))                                                                               \
    RF_SMALL_1(type, hlog2, h2log2, log2f(a))                                                                            \
    RF_SMALL_1(type, hlog10, h2log10, log10f(a))                                                                         \
    RF_SMALL_1(type, hsqrt, h2sqrt, sqrtf(a))                                                                            \
    RF_SMALL_1(type, hrsqrt, h2rsqrt, rsqrtf(a))                                                                         \
    RF_SMALL_1(type, hrcp, h2rcp, 1 / a)                                                                                 \
    /* Lost if another thread has changed the pair meanwhile, and then tried again. */                                   \
    RF_DEVICE type##2 unsafeAtomicAdd(type##2* at, type##2 value) {                                                      \
        unsigned* word = (unsigned*)at;                                                                                  \
        unsigned old = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT), expected;                    \
        do {                                                                                                             \
            expected = old;                                                                                              \
            unsigned sum = __builtin_bit_cast(unsigned, __builtin_bit_cast(type##2, expected) + value);                  \
            old = atomicCAS(word, expected, sum);                                                                        \
        } while (old != expected);                                                                                       \
        return __builtin_bit_cast(type##2, old);                                                                         \
    }                                                                                                                    \
    RF_DEVICE type##2 atomicAdd(type##2* at, type##2 value) { return unsafeAtomicAdd(at, value); }

RF_SMALL_FLOAT(__half, _Float16)
RF_SMALL_PAIR(__half2, __half)
typedef __half half;
typedef __half2 half2;
RF_SMALL_CONVERSIONS(__half, half)
#define RF_HALF_FUSED(x, y, z) __builtin_fmaf16(x.data, y.data, z.data)
RF_SMALL_FUNCTIONS(__half, RF_HALF_FUSED)
RF_SMALL __half2 make_half2(__half x, __half y) { return __half2(x, y); }
RF_DEVICE float amd_mixed_dot(__half2 a, __half2 b, float c, bool clamped) {
    float sum = (float)a.x * (float)b.x + (float)a.y * (float)b.y + c;
    return clamped ? RF_SATURATED(sum) : sum;
}

#define HIPRT_INF_FP16 __ushort_as_half((unsigned short)0x7c00)
#define HIPRT_NAN_FP16 __ushort_as_half((unsigned short)0x7fff)
#define HIPRT_MIN_DENORM_FP16 __ushort_as_half((unsigned short)0x0001)
#define HIPRT_MAX_NORMAL_FP16 __ushort_as_half((unsigned short)0x7bff)
#define HIPRT_NEG_ZERO_FP16 __ushort_as_half((unsigned short)0x8000)
#define HIPRT_ZERO_FP16 __ushort_as_half((unsigned short)0x0000)
#define HIPRT_ONE_FP16 __ushort_as_half((unsigned short)0x3c00)
