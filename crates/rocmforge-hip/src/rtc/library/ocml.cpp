// Mathematics of device code, by the names of AMD's device library, for hiprtc where that library is not installed. Compiled for the card
// without a processor, and linked as that library is: what a program does not use is left out.
//
// All work is done in f64; f32 and f16 functions round its result. Errors of f64, in units of the last place: 1 for exponentials, logarithms,
// powers, sine, cosine and cube roots, 4 for the other functions below, 16 for `tgamma` and the inverses of `erf`; `lgamma` has an absolute error of
// 1e-14 or a relative one of 4 units, whichever is larger. f32 functions: 1 unit, `lgamma` near its zeros
// as in f64. Bessel functions are absent.
#pragma clang fp contract(off)

#define RF_HELPER static inline __attribute__((always_inline))
#define RF_OCML extern "C"
#define RF_PRIVATE __attribute__((address_space(5)))

// Constants as a sum of two numbers, the second being what the first leaves.
#define RF_LN2 0x1.62e42fefa39efp-1
#define RF_LN2_LOW 0x1.abc9e3b39803fp-56
#define RF_LN10 0x1.26bb1bbb55516p+1
#define RF_LN10_LOW -0x1.f48ad494ea3e9p-53
#define RF_LOG2E 0x1.71547652b82fep+0
#define RF_LOG2E_LOW 0x1.777d0ffda0d24p-56
#define RF_LOG10E 0x1.bcb7b1526e50ep-2
#define RF_LOG10E_LOW 0x1.95355baaafad3p-57
#define RF_HALF_PI 0x1.921fb54442d18p+0
#define RF_HALF_PI_LOW 0x1.1a62633145c07p-54
#define RF_HALF_PI_LOWEST -0x1.f1976b7ed8fbcp-110
#define RF_PI 0x1.921fb54442d18p+1
#define RF_PI_LOW 0x1.1a62633145c07p-53
#define RF_SQRT_HALF 0x1.6a09e667f3bcdp-1
#define RF_SQRT_HALF_LOW -0x1.bdd3413b26456p-55
#define RF_TWO_BY_SQRT_PI 0x1.20dd750429b6dp+0
#define RF_INFINITY __builtin_inf()
#define RF_NAN __builtin_nan("")

// A value as an unevaluated sum.
struct rf_pair {
    double high, low;
};

RF_HELPER rf_pair rf_sum(double x, double y) {
    double s = x + y, part = s - x;
    return {s, (x - (s - part)) + (y - part)};
}
RF_HELPER rf_pair rf_product(double x, double y) {
    double p = x * y;
    return {p, __builtin_fma(x, y, -p)};
}
// A pair by a constant that is one.
RF_HELPER rf_pair rf_times(rf_pair x, double high, double low) {
    rf_pair p = rf_product(x.high, high);
    return rf_sum(p.high, p.low + (x.high * low + x.low * high));
}
RF_HELPER double rf_polynomial(double x, const double* coefficients, int degree) {
    double sum = coefficients[degree];
#pragma unroll
    for (int i = degree - 1; i >= 0; i--) sum = __builtin_fma(sum, x, coefficients[i]);
    return sum;
}

// e^(x + low) for |x| < 0.36.
RF_HELPER double rf_exp_reduced(double x, double low) {
    constexpr double factorials[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                                     1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0, 1.0 / 87178291200.0};
    double p = x * x * rf_polynomial(x, factorials, 12);
    rf_pair one = rf_sum(1.0, x);
    return one.high + (one.low + (p + (low + x * low)));
}
// e^(x + low).
RF_HELPER double rf_exp(double x, double low) {
    if (x > 710.0) return RF_INFINITY;
    if (x < -746.0) return 0.0;
    double k = __builtin_rint(x * RF_LOG2E);
    rf_pair r = rf_sum(__builtin_fma(-k, RF_LN2, x), __builtin_fma(-k, RF_LN2_LOW, low));
    double e = rf_exp_reduced(r.high, r.low);
    int n = (int)k;
    // In two steps, so that neither scale is out of range.
    return __builtin_ldexp(__builtin_ldexp(e, n / 2), n - n / 2);
}

// The logarithm of a positive finite number.
RF_HELPER rf_pair rf_log(double x) {
    int e;
    double m = __builtin_frexp(x, &e);
    if (m < RF_SQRT_HALF) {
        m *= 2.0;
        e -= 1;
    }
    // 2 atanh(s) with s = f / (2 + f).
    double f = m - 1.0, d = 2.0 + f, d_low = f - (d - 2.0), s = f / d;
    double s_low = (__builtin_fma(-s, d, f) - s * d_low) / d;
    rf_pair s2 = rf_product(s, s);
    s2.low += 2.0 * s * s_low;
    constexpr double odd[] = {1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
    double q = s2.high * s2.high * rf_polynomial(s2.high, odd, 10);
    constexpr double third = 1.0 / 3, third_low = 0x1.5555555555555p-56;
    rf_pair t = rf_times(s2, third, third_low);
    rf_pair u = rf_sum(t.high, q);
    u.low += t.low;
    rf_pair p = rf_product(s, u.high);
    p.low += s * u.low + s_low * u.high;
    rf_pair l = rf_sum(s, p.high);
    l.low += p.low + s_low;
    rf_pair k = rf_product((double)e, RF_LN2);
    k.low += e * RF_LN2_LOW;
    rf_pair sum = rf_sum(k.high, 2.0 * l.high);
    return rf_sum(sum.high, sum.low + (k.low + 2.0 * l.low));
}
// Whether x is none that `rf_log` takes; `value` is its logarithm then.
RF_HELPER bool rf_log_special(double x, double* value) {
    if (x > 0.0 && x < RF_INFINITY) return false;
    *value = x == 0.0 ? -RF_INFINITY : x < 0.0 ? RF_NAN : x;
    return true;
}
RF_OCML double __ocml_exp_f64(double x) { return x != x ? x : rf_exp(x, 0.0); }
RF_OCML double __ocml_exp2_f64(double x) {
    if (x != x) return x;
    if (x > 1025.0) return RF_INFINITY;
    if (x < -1080.0) return 0.0;
    double k = __builtin_rint(x);
    rf_pair r = rf_times({x - k, 0.0}, RF_LN2, RF_LN2_LOW);
    int n = (int)k;
    return __builtin_ldexp(__builtin_ldexp(rf_exp_reduced(r.high, r.low), n / 2), n - n / 2);
}
RF_OCML double __ocml_exp10_f64(double x) {
    if (x != x) return x;
    if (x > 310.0) return RF_INFINITY;
    if (x < -330.0) return 0.0;
    rf_pair r = rf_times({x, 0.0}, RF_LN10, RF_LN10_LOW);
    return rf_exp(r.high, r.low);
}
RF_OCML double __ocml_expm1_f64(double x) {
    if (!(__builtin_fabs(x) < 0.35)) return __ocml_exp_f64(x) - 1.0;
    constexpr double factorials[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
                                     1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0, 1.0 / 87178291200.0, 1.0 / 1307674368000.0};
    return x + x * x * rf_polynomial(x, factorials, 13);
}
RF_OCML double __ocml_log_f64(double x) {
    double special;
    if (rf_log_special(x, &special)) return special;
    return rf_log(x).high;
}
RF_OCML double __ocml_log2_f64(double x) {
    double special;
    if (rf_log_special(x, &special)) return special;
    return rf_times(rf_log(x), RF_LOG2E, RF_LOG2E_LOW).high;
}
RF_OCML double __ocml_log10_f64(double x) {
    double special;
    if (rf_log_special(x, &special)) return special;
    return rf_times(rf_log(x), RF_LOG10E, RF_LOG10E_LOW).high;
}
RF_OCML double __ocml_log1p_f64(double x) {
    double special, u = 1.0 + x;
    if (rf_log_special(u, &special)) return special;
    if (__builtin_fabs(x) < 0x1p-54) return x;
    rf_pair l = rf_log(u);
    return l.high + (l.low + (x - (u - 1.0)) / u);
}
RF_OCML double __ocml_pow_f64(double x, double y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return RF_NAN;
    double a = __builtin_fabs(x), half = y * 0.5;
    bool whole = __builtin_trunc(y) == y, odd = whole && __builtin_trunc(half) != half && __builtin_fabs(y) < 0x1p53;
    bool negative = odd && __builtin_signbit(x);
    double r;
    if (a == 0.0 || a == RF_INFINITY) {
        r = (a == 0.0) == (y < 0.0) ? RF_INFINITY : 0.0;
    } else if (__builtin_fabs(y) == RF_INFINITY) {
        r = a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? RF_INFINITY : 0.0;
    } else if (x < 0.0 && !whole) {
        return RF_NAN;
    } else {
        rf_pair l = rf_log(a);
        double h = y * l.high;
        r = __builtin_fabs(h) > 800.0 ? (h > 0.0 ? RF_INFINITY : 0.0) : rf_exp(h, __builtin_fma(y, l.high, -h) + y * l.low);
    }
    return negative ? -r : r;
}
RF_OCML double __ocml_pown_f64(double x, int y) { return __ocml_pow_f64(x, (double)y); }
RF_HELPER double rf_cube_root(double x, double sign) {
    double a = __builtin_fabs(x);
    if (a == 0.0 || !(a < RF_INFINITY)) return sign > 0.0 ? x : 1.0 / x;
    rf_pair l = rf_log(a);
    double h = l.high / 3.0;
    return __builtin_copysign(rf_exp(sign * h, sign * ((__builtin_fma(-3.0, h, l.high) + l.low) / 3.0)), x);
}
RF_OCML double __ocml_cbrt_f64(double x) { return rf_cube_root(x, 1.0); }
RF_OCML double __ocml_rcbrt_f64(double x) { return rf_cube_root(x, -1.0); }

// Bits of 2/pi behind the point.
static const unsigned long long rf_two_by_pi[24] = {
    0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull,
    0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
    0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull,
    0x56033046fc7b6babull, 0xf0cfbc209af4361dull};

// The quadrant of a large number, and what is left of it: x 2/pi modulo 4 from the bits of 2/pi that matter.
static __attribute__((noinline)) int rf_reduce_large(double x, double* high, double* low) {
    unsigned long long bits = __builtin_bit_cast(unsigned long long, x);
    unsigned long long m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    int e = (int)(bits >> 52 & 0x7ff) - 1075, start = e > 2 ? e - 2 : 0, word = start / 64, shift = start % 64;
    unsigned long long p[4], carry = 0;
    // Four words of 2/pi from bit `start` on, the last first, times the mantissa.
    for (int i = 3; i >= 0; i--) {
        unsigned long long w = rf_two_by_pi[word + i] << shift;
        if (shift) w |= rf_two_by_pi[word + i + 1] >> (64 - shift);
        p[i] = w;
    }
    int right = e > 2 ? 0 : 2 - e;
    if (right) {
        for (int i = 3; i >= 0; i--) p[i] = p[i] >> right | (i ? p[i - 1] << (64 - right) : 0);
    }
    for (int i = 3; i >= 0; i--) {
        unsigned __int128 product = (unsigned __int128)p[i] * m + carry;
        p[i] = (unsigned long long)product;
        carry = (unsigned long long)(product >> 64);
    }
    int quadrant = (int)(p[0] >> 62);
    for (int i = 0; i < 4; i++) p[i] = p[i] << 2 | (i < 3 ? p[i + 1] >> 62 : 0);
    bool negative = p[0] >> 63;
    if (negative) {
        quadrant++;
        for (int i = 3, up = 1; i >= 0; i--) {
            p[i] = ~p[i] + up;
            up = up && p[i] == 0;
        }
    }
    int scale = 0;
    while (p[0] == 0 && scale < 192) {
        for (int i = 0; i < 3; i++) p[i] = p[i + 1];
        p[3] = 0;
        scale += 64;
    }
    int zeros = p[0] ? __builtin_clzll(p[0]) : 0;
    if (zeros) {
        p[0] = p[0] << zeros | p[1] >> (64 - zeros);
        p[1] = p[1] << zeros | p[2] >> (64 - zeros);
    }
    scale += zeros;
    rf_pair f = {__builtin_ldexp((double)(p[0] >> 11), -53 - scale),
                   __builtin_ldexp((double)((p[0] & 0x7ff) << 42 | p[1] >> 22), -106 - scale)};
    rf_pair r = rf_times(f, RF_HALF_PI, RF_HALF_PI_LOW);
    *high = negative ? -r.high : r.high;
    *low = negative ? -r.low : r.low;
    return quadrant & 3;
}
// The quadrant of x >= 0, and what is left: at most pi/4.
RF_HELPER int rf_reduce(double x, rf_pair* r) {
    if (x >= 0x1p28) {
        double high, low;
        int quadrant = rf_reduce_large(x, &high, &low);
        *r = {high, low};
        return quadrant;
    }
    double n = __builtin_rint(x * 0x1.45f306dc9c883p-1);
    rf_pair p = rf_product(n, RF_HALF_PI), q = rf_product(n, RF_HALF_PI_LOW);
    rf_pair first = rf_sum(x - p.high, -p.low), second = rf_sum(first.high, -q.high);
    *r = rf_sum(second.high, second.low + (first.low - (q.low + n * RF_HALF_PI_LOWEST)));
    return (int)n & 3;
}
RF_HELPER double rf_sin_reduced(rf_pair r) {
    constexpr double c[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0, -1.0 / 1307674368000.0,
                            1.0 / 355687428096000.0};
    double z = r.high * r.high;
    return r.high + (r.high * (z * rf_polynomial(z, c, 7)) + r.low * (1.0 - 0.5 * z));
}
RF_HELPER double rf_cos_reduced(rf_pair r) {
    constexpr double c[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0,
                            -1.0 / 6402373705728000.0};
    rf_pair z = rf_product(r.high, r.high);
    rf_pair h = rf_sum(1.0, -0.5 * z.high);
    return h.high + (h.low + (z.high * z.high * rf_polynomial(z.high, c, 7) - (0.5 * z.low + r.high * r.low)));
}
RF_HELPER void rf_sincos_of(int quadrant, rf_pair r, double* sine, double* cosine) {
    double s = rf_sin_reduced(r), c = rf_cos_reduced(r);
    double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = quadrant & 2 ? -a : a;
    *cosine = quadrant == 1 || quadrant == 2 ? -b : b;
}
RF_HELPER void rf_sincos(double x, double* sine, double* cosine) {
    double a = __builtin_fabs(x);
    if (!(a < RF_INFINITY)) {
        *sine = *cosine = RF_NAN;
        return;
    }
    rf_pair r;
    int quadrant = rf_reduce(a, &r);
    rf_sincos_of(quadrant, r, sine, cosine);
    // The sign of a zero stays.
    if (__builtin_signbit(x)) *sine = -*sine;
}
RF_HELPER void rf_sincospi(double x, double* sine, double* cosine) {
    if (!(__builtin_fabs(x) < RF_INFINITY)) {
        *sine = *cosine = RF_NAN;
        return;
    }
    double turn = __builtin_fabs(x), r = turn - 2.0 * __builtin_floor(turn * 0.5), n = __builtin_rint(2.0 * r);
    rf_sincos_of((int)n & 3, rf_times({r - 0.5 * n, 0.0}, RF_PI, RF_PI_LOW), sine, cosine);
    if (__builtin_signbit(x)) *sine = -*sine;
}
RF_OCML double __ocml_sin_f64(double x) {
    double s, c;
    rf_sincos(x, &s, &c);
    return s;
}
RF_OCML double __ocml_cos_f64(double x) {
    double s, c;
    rf_sincos(x, &s, &c);
    return c;
}
RF_OCML double __ocml_tan_f64(double x) {
    double s, c;
    rf_sincos(x, &s, &c);
    return s / c;
}
RF_OCML double __ocml_sinpi_f64(double x) {
    double s, c;
    rf_sincospi(x, &s, &c);
    return s;
}
RF_OCML double __ocml_cospi_f64(double x) {
    double s, c;
    rf_sincospi(x, &s, &c);
    return c;
}
RF_OCML double __ocml_sincos_f64(double x, RF_PRIVATE double* cosine) {
    double s, c;
    rf_sincos(x, &s, &c);
    *cosine = c;
    return s;
}
RF_OCML double __ocml_sincospi_f64(double x, RF_PRIVATE double* cosine) {
    double s, c;
    rf_sincospi(x, &s, &c);
    *cosine = c;
    return s;
}

// The angle of (x, y) with 0 <= y <= x: that of the nearest quarter, and the series of what is left.
RF_HELPER rf_pair rf_angle(double y, double x) {
    constexpr double angles[] = {0.0, 0x1.f5b75f92c80ddp-3, 0x1.dac670561bb4fp-2, 0x1.4978fa3269ee1p-1, 0x1.921fb54442d18p-1};
    constexpr double lows[] = {0.0, 0x1.8ab6e3cf7afbdp-57, 0x1.a2b7f222f65e2p-56, 0x1.2419a87f2a458p-56, 0x1.1a62633145c07p-55};
    int i = (int)__builtin_rint(4.0 * (y / x));
    double c = 0.25 * i, high = 0.0, low = 0.0;
#pragma unroll
    for (int k = 1; k < 5; k++) {
        high = i == k ? angles[k] : high;
        low = i == k ? lows[k] : low;
    }
    double t = __builtin_fma(-c, x, y) / __builtin_fma(c, y, x), z = t * t;
    constexpr double odd[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19};
    rf_pair sum = rf_sum(high, t);
    return {sum.high, sum.low + (low + t * (z * rf_polynomial(z, odd, 8)))};
}
RF_OCML double __ocml_atan2_f64(double y, double x) {
    if (x != x || y != y) return RF_NAN;
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    if (a == RF_INFINITY && b == RF_INFINITY) a = b = 1.0;
    rf_pair r;
    bool steep = b > a;
    double large = steep ? b : a, small = steep ? a : b;
    if (small == 0.0 || large == RF_INFINITY) {
        r = {0.0, 0.0};
    } else {
        double scale = large > 0x1p900 ? 0x1p-200 : large < 0x1p-900 ? 0x1p120 : 1.0;
        r = rf_angle(small * scale, large * scale);
    }
    if (steep) {
        rf_pair s = rf_sum(RF_HALF_PI, -r.high);
        r = {s.high, s.low + (RF_HALF_PI_LOW - r.low)};
    }
    if (__builtin_signbit(x)) {
        rf_pair s = rf_sum(RF_PI, -r.high);
        r = {s.high, s.low + (RF_PI_LOW - r.low)};
    }
    return __builtin_copysign(r.high + r.low, y);
}
RF_OCML double __ocml_atan_f64(double x) { return __ocml_atan2_f64(x, 1.0); }
RF_OCML double __ocml_asin_f64(double x) { return __ocml_atan2_f64(x, __builtin_sqrt((1.0 - x) * (1.0 + x))); }
RF_OCML double __ocml_acos_f64(double x) { return 2.0 * __ocml_atan2_f64(__builtin_sqrt(1.0 - x), __builtin_sqrt(1.0 + x)); }

RF_OCML double __ocml_sinh_f64(double x) {
    double a = __builtin_fabs(x), r;
    if (a < 22.0) {
        double t = __ocml_expm1_f64(a);
        r = 0.5 * (t + t / (t + 1.0));
    } else {
        double half = __ocml_exp_f64(0.5 * a);
        r = 0.5 * half * half;
        if (a < 700.0) r = 0.5 * __ocml_exp_f64(a);
    }
    return __builtin_copysign(r, x);
}
RF_OCML double __ocml_cosh_f64(double x) {
    double a = __builtin_fabs(x);
    if (a < 700.0) {
        double e = __ocml_exp_f64(a);
        return 0.5 * e + 0.5 / e;
    }
    double half = __ocml_exp_f64(0.5 * a);
    return 0.5 * half * half;
}
RF_OCML double __ocml_tanh_f64(double x) {
    double a = __builtin_fabs(x);
    if (a > 22.0) return __builtin_copysign(1.0, x);
    double t = __ocml_expm1_f64(2.0 * a);
    return __builtin_copysign(t / (t + 2.0), x);
}
RF_OCML double __ocml_asinh_f64(double x) {
    double a = __builtin_fabs(x);
    double r = a > 0x1p28 ? __ocml_log_f64(a) + RF_LN2 : __ocml_log1p_f64(a + a * a / (1.0 + __builtin_sqrt(a * a + 1.0)));
    return __builtin_copysign(r, x);
}
RF_OCML double __ocml_acosh_f64(double x) {
    if (x > 0x1p28) return __ocml_log_f64(x) + RF_LN2;
    double t = x - 1.0;
    return __ocml_log1p_f64(t + __builtin_sqrt(2.0 * t + t * t));
}
RF_OCML double __ocml_atanh_f64(double x) {
    double a = __builtin_fabs(x);
    return __builtin_copysign(0.5 * __ocml_log1p_f64(2.0 * a / (1.0 - a)), x);
}

// erfc(x) e^(x^2) for x >= 0.5: a polynomial of (x - 3) / (x + 2), over x + 2, within 1e-18 by Chebyshev's series.
RF_HELPER double rf_erfcx(double x) {
    constexpr double c[] = {
        0x1.ca3e31c6b4478p-1, -0x1.db71a780a218bp-2, 0x1.4ba6c0dbd2c79p-3, -0x1.a8a7f0873d0f3p-6,
        -0x1.69ea32c6c5aebp-8, 0x1.8b6e6335fc20cp-9, 0x1.57d1d75333dc1p-12, -0x1.75aae83de9492p-12,
        -0x1.c20494d7deadep-15, 0x1.81a8f84c88f76p-15, 0x1.cd77640d4aba5p-17, -0x1.5fce9573b74f7p-18,
        -0x1.c85dcb83607e5p-19, 0x1.5ae33b4e62681p-23, 0x1.70a521bc2ae64p-21, 0x1.6b6727d93ae27p-23,
        -0x1.74807df4cb624p-24, -0x1.1e9da9085cb87p-24, -0x1.83f0e0bddcc9cp-28, 0x1.dd1d054c16571p-27,
        0x1.de6c9cb6837c1p-28, -0x1.44d9dc3b68ff0p-30, -0x1.1f94772dc667dp-29, -0x1.857d99891f80bp-33,
        0x1.77cb15052e918p-32, 0x1.905a6b1c392fbp-35, -0x1.bec93e06dc14bp-36};
    if (x > 0x1p60) return (0.5 * RF_TWO_BY_SQRT_PI) / x;
    return rf_polynomial((x - 3.0) / (x + 2.0), c, 26) / (x + 2.0);
}
RF_HELPER double rf_erf_small(double x) {
    constexpr double c[] = {-1.0 / 3, 1.0 / 10, -1.0 / 42, 1.0 / 216, -1.0 / 1320, 1.0 / 9360, -1.0 / 75600, 1.0 / 685440, -1.0 / 6894720,
                            1.0 / 76204800.0, -1.0 / 918086400.0, 1.0 / 11975040000.0, -1.0 / 168129561600.0};
    double z = x * x, s = x * z * rf_polynomial(z, c, 12);
    return RF_TWO_BY_SQRT_PI * x + (0x1.1ae3a914fed80p-57 * x + RF_TWO_BY_SQRT_PI * s);
}
// erfc(x + low).
RF_HELPER double rf_erfc(double x, double low) {
    if (x != x) return x;
    if (__builtin_fabs(x) < 0.5) return 1.0 - rf_erf_small(x + low);
    double a = __builtin_fabs(x), r = 0.0;
    if (a < 28.0) {
        rf_pair z = rf_product(a, a);
        r = rf_exp(-z.high, -(z.low + 2.0 * x * low)) * rf_erfcx(a);
    }
    return x < 0.0 ? 2.0 - r : r;
}
RF_OCML double __ocml_erfc_f64(double x) { return rf_erfc(x, 0.0); }
RF_OCML double __ocml_erf_f64(double x) { return __builtin_fabs(x) < 0.5 ? rf_erf_small(x) : 1.0 - rf_erfc(x, 0.0); }
RF_OCML double __ocml_erfcx_f64(double x) {
    if (x >= 0.5) return rf_erfcx(x);
    rf_pair z = rf_product(x, x);
    return rf_exp(z.high, z.low) * __ocml_erfc_f64(x);
}
// The x >= 0 whose erfc is q <= 1, where `p` is 1 - q.
RF_HELPER double rf_erfc_inverse(double q, double p) {
    if (q == 0.0) return RF_INFINITY;
    // A first guess from the logarithm, then steps of third order.
    double l = __ocml_log_f64(q * (1.0 + p)), a = 4.33 + 0.5 * l;
    double x = __builtin_sqrt(__builtin_sqrt(a * a - l / 0.147) - a);
    for (int i = 0; i < 3; i++) {
        double error = p < 0.5 ? p - __ocml_erf_f64(x) : __ocml_erfc_f64(x) - q;
        double step = error / (RF_TWO_BY_SQRT_PI * __ocml_exp_f64(-x * x));
        x += step / (1.0 - x * step);
    }
    return x;
}
RF_OCML double __ocml_erfinv_f64(double x) {
    double a = __builtin_fabs(x);
    if (!(a <= 1.0)) return RF_NAN;
    if (a < 0x1p-27) return x * (0.5 / (0.5 * RF_TWO_BY_SQRT_PI));
    return __builtin_copysign(rf_erfc_inverse(1.0 - a, a), x);
}
RF_OCML double __ocml_erfcinv_f64(double x) {
    if (!(x >= 0.0 && x <= 2.0)) return RF_NAN;
    if (x > 0.5 && x < 1.5) return __ocml_erfinv_f64(1.0 - x);
    return x < 1.0 ? rf_erfc_inverse(x, 1.0 - x) : -rf_erfc_inverse(2.0 - x, x - 1.0);
}
RF_OCML double __ocml_ncdf_f64(double x) {
    if (!(__builtin_fabs(x) < RF_INFINITY)) return x < 0.0 ? 0.0 : x > 0.0 ? 1.0 : x;
    rf_pair y = rf_times({-x, 0.0}, RF_SQRT_HALF, RF_SQRT_HALF_LOW);
    return 0.5 * rf_erfc(y.high, y.low);
}
RF_OCML double __ocml_ncdfinv_f64(double x) { return -2.0 * RF_SQRT_HALF * __ocml_erfcinv_f64(2.0 * x); }

// What Stirling's formula adds to (z - 1/2) log z - z, for z >= 16.
RF_HELPER double rf_stirling(double z) {
    constexpr double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
    double w = 1.0 / z;
    return w * rf_polynomial(w * w, c, 5);
}
RF_OCML double __ocml_lgamma_f64(double x) {
    double a = __builtin_fabs(x);
    if (!(a < RF_INFINITY)) return x * x;
    double reflected = 0.0;
    if (x <= 0.0) {
        double s = __builtin_fabs(__ocml_sinpi_f64(a));
        if (s == 0.0) return RF_INFINITY;
        reflected = __ocml_log_f64(RF_PI / s) - __ocml_log_f64(a);
    }
    double z = a, product = 1.0;
    while (z < 16.0) {
        product *= z;
        z += 1.0;
    }
    rf_pair l = rf_log(z), p = rf_product(z - 0.5, l.high), s = rf_sum(p.high, -z);
    double tail = s.low + p.low + (z - 0.5) * l.low + 0x1.d67f1c864beb5p-1 + rf_stirling(z);
    double r = s.high + tail - __ocml_log_f64(product);
    return x <= 0.0 ? reflected - r : r;
}
RF_OCML double __ocml_tgamma_f64(double x) {
    if (x != x || x == RF_INFINITY) return x;
    if (x == 0.0) return __builtin_copysign(RF_INFINITY, x);
    double a = __builtin_fabs(x);
    if (x < 0.0 && __builtin_trunc(x) == x) return RF_NAN;
    if (a > 185.0) return x > 0.0 ? RF_INFINITY : 0.0;
    double product = 1.0, z = a, low = 0.0;
    while (z < 16.0) {
        product *= z;
        rf_pair next = rf_sum(z, 1.0);
        z = next.high;
        low += next.low;
    }
    // Half the power at a time, so that it does not leave the range before the quotient.
    rf_pair l = rf_log(z), e = rf_product(0.5 * (z - 0.5), l.high);
    double half = rf_exp(e.high, e.low + 0.5 * (z - 0.5) * l.low);
    double r = half * (0x1.40d931ff62706p+1 * rf_exp(-z, rf_stirling(z) + low * l.high)) / product * half;
    if (x > 0.0) return r;
    double s = __ocml_sinpi_f64(a);
    return -RF_PI / (a * s) / r;
}

// x - n y with n = trunc(x / y), exactly: parts of the quotient, the highest first. `quotient` has its low bits.
RF_HELPER double rf_modulo(double x, double y, unsigned* quotient) {
    *quotient = 0;
    double r = __builtin_fabs(x), b = __builtin_fabs(y);
    if (!(r < RF_INFINITY) || b != b || b == 0.0) return RF_NAN;
    if (b == RF_INFINITY) return r;
    while (r >= b) {
        int k = (int)__builtin_amdgcn_frexp_exp(r) - (int)__builtin_amdgcn_frexp_exp(b) - 40;
        double part = __builtin_ldexp(b, k > 0 ? k : 0), n = __builtin_trunc(r / part);
        double next = __builtin_fma(-n, part, r);
        if (next < 0.0) {
            n -= 1.0;
            next = __builtin_fma(-n, part, r);
        }
        unsigned long long whole = (unsigned long long)n;
        *quotient += k > 31 ? 0 : (unsigned)(whole << (k > 0 ? k : 0));
        r = next;
    }
    return r;
}
RF_OCML double __ocml_fmod_f64(double x, double y) {
    unsigned quotient;
    return __builtin_copysign(rf_modulo(x, y, &quotient), x);
}
RF_HELPER double rf_remainder(double x, double y, unsigned* quotient) {
    double r = rf_modulo(x, y, quotient), b = __builtin_fabs(y);
    double rest = b - r;
    if (r > rest || (r == rest && (*quotient & 1))) {
        r = -rest;
        *quotient += 1;
    }
    return __builtin_signbit(x) ? -r : r;
}
RF_OCML double __ocml_remainder_f64(double x, double y) {
    unsigned quotient;
    return rf_remainder(x, y, &quotient);
}
RF_OCML double __ocml_remquo_f64(double x, double y, RF_PRIVATE int* out) {
    unsigned quotient;
    double r = rf_remainder(x, y, &quotient);
    int low = (int)(quotient & 0x7f);
    *out = __builtin_signbit(x) != __builtin_signbit(y) ? -low : low;
    return r;
}

// The length of a vector, scaled by its longest part.
RF_HELPER double rf_length(double x, double y, double z, double w) {
    double parts[] = {__builtin_fabs(x), __builtin_fabs(y), __builtin_fabs(z), __builtin_fabs(w)};
    double most = 0.0;
    bool infinite = false, nan = false;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        most = parts[i] > most ? parts[i] : most;
        infinite |= parts[i] == RF_INFINITY;
        nan |= parts[i] != parts[i];
    }
    if (infinite || nan || most == 0.0) return infinite ? RF_INFINITY : nan ? RF_NAN : 0.0;
    int e = (int)__builtin_amdgcn_frexp_exp(most);
    rf_pair sum = {0.0, 0.0};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        double p = __builtin_ldexp(parts[i], -e);
        rf_pair square = rf_product(p, p), s = rf_sum(sum.high, square.high);
        sum = {s.high, sum.low + s.low + square.low};
    }
    return __builtin_ldexp(__builtin_sqrt(sum.high + sum.low), e);
}
RF_OCML double __ocml_hypot_f64(double x, double y) { return rf_length(x, y, 0.0, 0.0); }
RF_OCML double __ocml_rhypot_f64(double x, double y) { return 1.0 / rf_length(x, y, 0.0, 0.0); }
RF_OCML double __ocml_len3_f64(double x, double y, double z) { return rf_length(x, y, z, 0.0); }
RF_OCML double __ocml_rlen3_f64(double x, double y, double z) { return 1.0 / rf_length(x, y, z, 0.0); }
RF_OCML double __ocml_len4_f64(double x, double y, double z, double w) { return rf_length(x, y, z, w); }
RF_OCML double __ocml_rlen4_f64(double x, double y, double z, double w) { return 1.0 / rf_length(x, y, z, w); }

RF_OCML double __ocml_fdim_f64(double x, double y) { return x != x || y != y ? RF_NAN : x > y ? x - y : 0.0; }
RF_OCML float __ocml_fdim_f32(float x, float y) { return x != x || y != y ? (float)RF_NAN : x > y ? x - y : 0.0f; }
RF_OCML double __ocml_nextafter_f64(double x, double y) {
    if (x != x || y != y) return RF_NAN;
    if (x == y) return y;
    if (x == 0.0) return __builtin_copysign(0x1p-1074, y);
    long long bits = __builtin_bit_cast(long long, x);
    return __builtin_bit_cast(double, (x < y) == (x > 0.0) ? bits + 1 : bits - 1);
}
RF_OCML float __ocml_nextafter_f32(float x, float y) {
    if (x != x || y != y) return (float)RF_NAN;
    if (x == y) return y;
    if (x == 0.0f) return __builtin_copysignf(0x1p-149f, y);
    int bits = __builtin_bit_cast(int, x);
    return __builtin_bit_cast(float, (x < y) == (x > 0.0f) ? bits + 1 : bits - 1);
}
RF_OCML int __ocml_ilogb_f64(double x) {
    if (x == 0.0) return -2147483647 - 1;
    if (!(__builtin_fabs(x) < RF_INFINITY)) return x != x ? -2147483647 - 1 : 2147483647;
    return (int)__builtin_amdgcn_frexp_exp(x) - 1;
}
RF_OCML int __ocml_ilogb_f32(float x) { return __ocml_ilogb_f64((double)x); }
RF_OCML double __ocml_logb_f64(double x) {
    if (x == 0.0) return -RF_INFINITY;
    return __builtin_fabs(x) < RF_INFINITY ? (double)__ocml_ilogb_f64(x) : x * x;
}

#define RF_FRACTIONS(type, suffix, of)                                                                                                \
    RF_OCML type __ocml_modf_##suffix(type x, RF_PRIVATE type* whole) {                                                               \
        type w = __builtin_trunc##of(x);                                                                                              \
        *whole = w;                                                                                                                   \
        return __builtin_copysign##of(__builtin_fabs##of(x) < (type)RF_INFINITY ? x - w : x == w ? (type)0 : x, x);                   \
    }                                                                                                                                 \
    RF_OCML type __ocml_frexp_##suffix(type x, RF_PRIVATE int* exponent) {                                                            \
        int e;                                                                                                                        \
        type m = __builtin_frexp##of(x, &e);                                                                                          \
        *exponent = e;                                                                                                                \
        return m;                                                                                                                     \
    }
RF_FRACTIONS(float, f32, f)
RF_FRACTIONS(double, f64, )

// What one instruction does, or LLVM writes out.
#define RF_BUILTINS(type, suffix, of)                                                                                                 \
    RF_OCML type __ocml_ceil_##suffix(type x) { return __builtin_ceil##of(x); }                                                       \
    RF_OCML type __ocml_floor_##suffix(type x) { return __builtin_floor##of(x); }                                                     \
    RF_OCML type __ocml_trunc_##suffix(type x) { return __builtin_trunc##of(x); }                                                     \
    RF_OCML type __ocml_rint_##suffix(type x) { return __builtin_rint##of(x); }                                                       \
    RF_OCML type __ocml_nearbyint_##suffix(type x) { return __builtin_nearbyint##of(x); }                                             \
    RF_OCML type __ocml_round_##suffix(type x) { return __builtin_round##of(x); }                                                     \
    RF_OCML type __ocml_fabs_##suffix(type x) { return __builtin_fabs##of(x); }                                                       \
    RF_OCML type __ocml_sqrt_##suffix(type x) { return __builtin_sqrt##of(x); }                                                       \
    RF_OCML type __ocml_rsqrt_##suffix(type x) { return (type)1 / __builtin_sqrt##of(x); }                                            \
    RF_OCML type __ocml_copysign_##suffix(type x, type y) { return __builtin_copysign##of(x, y); }                                    \
    RF_OCML type __ocml_fmax_##suffix(type x, type y) { return __builtin_fmax##of(x, y); }                                            \
    RF_OCML type __ocml_fmin_##suffix(type x, type y) { return __builtin_fmin##of(x, y); }                                            \
    RF_OCML type __ocml_fma_##suffix(type x, type y, type z) { return __builtin_fma##of(x, y, z); }                                   \
    RF_OCML type __ocml_ldexp_##suffix(type x, int y) { return __builtin_ldexp##of(x, y); }                                           \
    RF_OCML type __ocml_scalbn_##suffix(type x, int y) { return __builtin_ldexp##of(x, y); }                                          \
    RF_OCML type __ocml_scalb_##suffix(type x, type y) { return (type)((double)x * __ocml_exp2_f64((double)y)); }                     \
    RF_OCML int __ocml_isnan_##suffix(type x) { return x != x; }                                                                      \
    RF_OCML int __ocml_isinf_##suffix(type x) { return __builtin_fabs##of(x) == (type)RF_INFINITY; }                                  \
    RF_OCML int __ocml_isfinite_##suffix(type x) { return __builtin_fabs##of(x) < (type)RF_INFINITY; }                                \
    RF_OCML int __ocml_signbit_##suffix(type x) { return __builtin_signbit(x); }
RF_BUILTINS(float, f32, f)
RF_BUILTINS(double, f64, )

#define RF_F32(name)                                                                                                                  \
    RF_OCML float __ocml_##name##_f32(float x) { return (float)__ocml_##name##_f64((double)x); }
#define RF_F32_OF_2(name)                                                                                                             \
    RF_OCML float __ocml_##name##_f32(float x, float y) { return (float)__ocml_##name##_f64((double)x, (double)y); }
RF_F32(acos) RF_F32(acosh) RF_F32(asin) RF_F32(asinh) RF_F32(atan) RF_F32(atanh) RF_F32(cbrt) RF_F32(rcbrt) RF_F32(sin) RF_F32(cos) RF_F32(tan)
RF_F32(sinpi) RF_F32(cospi) RF_F32(sinh) RF_F32(cosh) RF_F32(tanh) RF_F32(exp) RF_F32(exp2) RF_F32(exp10) RF_F32(expm1) RF_F32(log) RF_F32(log2)
RF_F32(log10) RF_F32(log1p) RF_F32(logb) RF_F32(erf) RF_F32(erfc) RF_F32(erfcx) RF_F32(erfinv) RF_F32(erfcinv) RF_F32(ncdf) RF_F32(ncdfinv)
RF_F32(lgamma) RF_F32(tgamma)
RF_F32_OF_2(pow) RF_F32_OF_2(atan2) RF_F32_OF_2(fmod) RF_F32_OF_2(remainder) RF_F32_OF_2(hypot) RF_F32_OF_2(rhypot)
RF_OCML float __ocml_pown_f32(float x, int y) { return (float)__ocml_pow_f64((double)x, (double)y); }
RF_OCML float __ocml_remquo_f32(float x, float y, RF_PRIVATE int* out) { return (float)__ocml_remquo_f64((double)x, (double)y, out); }
RF_OCML float __ocml_len3_f32(float x, float y, float z) { return (float)__ocml_len3_f64(x, y, z); }
RF_OCML float __ocml_rlen3_f32(float x, float y, float z) { return (float)__ocml_rlen3_f64(x, y, z); }
RF_OCML float __ocml_len4_f32(float x, float y, float z, float w) { return (float)__ocml_len4_f64(x, y, z, w); }
RF_OCML float __ocml_rlen4_f32(float x, float y, float z, float w) { return (float)__ocml_rlen4_f64(x, y, z, w); }
RF_OCML float __ocml_sincos_f32(float x, RF_PRIVATE float* cosine) {
    double s, c;
    rf_sincos((double)x, &s, &c);
    *cosine = (float)c;
    return (float)s;
}
RF_OCML float __ocml_sincospi_f32(float x, RF_PRIVATE float* cosine) {
    double s, c;
    rf_sincospi((double)x, &s, &c);
    *cosine = (float)c;
    return (float)s;
}

// The card's own approximations.
RF_OCML float __ocml_native_sin_f32(float x) { return __builtin_amdgcn_sinf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f)); }
RF_OCML float __ocml_native_cos_f32(float x) { return __builtin_amdgcn_cosf(__builtin_amdgcn_fractf(x * 0x1.45f306p-3f)); }
RF_OCML float __ocml_native_exp_f32(float x) { return __builtin_exp2f(x * (float)RF_LOG2E); }
RF_OCML float __ocml_native_exp10_f32(float x) { return __builtin_exp2f(x * 0x1.a934f0p+1f); }
RF_OCML float __ocml_native_log_f32(float x) { return __builtin_log2f(x) * (float)RF_LN2; }
RF_OCML float __ocml_native_log2_f32(float x) { return __builtin_log2f(x); }
RF_OCML float __ocml_native_log10_f32(float x) { return __builtin_log2f(x) * 0x1.344136p-2f; }
RF_OCML float __ocml_native_sqrt_f32(float x) { return __builtin_sqrtf(x); }

typedef _Float16 rf_half2 __attribute__((ext_vector_type(2)));
#define RF_F16(name)                                                                                                                  \
    RF_OCML _Float16 __ocml_##name##_f16(_Float16 x) { return (_Float16)__ocml_##name##_f32((float)x); }                              \
    RF_OCML rf_half2 __ocml_##name##_2f16(rf_half2 x) { return {__ocml_##name##_f16(x.x), __ocml_##name##_f16(x.y)}; }
RF_F16(ceil) RF_F16(cos) RF_F16(exp) RF_F16(exp2) RF_F16(exp10) RF_F16(fabs) RF_F16(floor) RF_F16(log) RF_F16(log2) RF_F16(log10) RF_F16(rint)
RF_F16(rsqrt) RF_F16(sin) RF_F16(sqrt) RF_F16(trunc)
RF_OCML _Float16 __ocml_fma_f16(_Float16 x, _Float16 y, _Float16 z) { return __builtin_fmaf16(x, y, z); }
RF_OCML rf_half2 __ocml_fma_2f16(rf_half2 x, rf_half2 y, rf_half2 z) { return __builtin_elementwise_fma(x, y, z); }
RF_OCML _Float16 __ocml_fmax_f16(_Float16 x, _Float16 y) { return __builtin_fmaxf16(x, y); }
RF_OCML _Float16 __ocml_fmin_f16(_Float16 x, _Float16 y) { return __builtin_fminf16(x, y); }
RF_OCML _Float16 __ocml_pown_f16(_Float16 x, int y) { return (_Float16)__ocml_pow_f64((double)x, (double)y); }
RF_OCML int __ocml_isinf_f16(_Float16 x) { return __ocml_isinf_f32((float)x); }
RF_OCML int __ocml_isnan_f16(_Float16 x) { return x != x; }
