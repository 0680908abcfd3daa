// hiprtc without ROCm's headers: every function of floats of 16 bits, against f64. Functions of pairs must give what those of numbers give.
#include <cmath>

#include "rtc.h"

typedef long double Real;

// A format of 16 bits: bits behind the point, and the exponent of the smallest normal number.
struct Format {
  const char* word;
  const char* type;
  int fraction, least;
};
static const Format formats[] = {{"half", "__half", 10, -14}, {"bfloat16", "__hip_bfloat16", 7, -126}};
static const Format* format;

static Real most() { return ldexpl(2 - ldexpl(1, -format->fraction), -format->least + 1); }

static Real value_of(unsigned bits) {
  int width = 15 - format->fraction, exponent = bits >> format->fraction & ((1 << width) - 1);
  Real fraction = bits & ((1 << format->fraction) - 1), sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << width) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * ldexpl(fraction, format->least - format->fraction);
  return sign * ldexpl(1 + ldexpl(fraction, -format->fraction), exponent - 1 + format->least);
}

// The distance of two neighbours at a number.
static Real unit(Real x) {
  int exponent = x == 0 || x != x || fabsl(x) == INFINITY ? format->least : ilogbl(x);
  return ldexpl(1, (exponent > format->least ? exponent : format->least) - format->fraction);
}

// The nearest number of the format, or the next towards zero, up or down.
static Real rounded(Real x, char way = 'n') {
  if (x != x || fabsl(x) == INFINITY || x == 0) return x;
  Real u = unit(x), steps = x / u;
  Real y = (way == 'n' ? rintl(steps) : way == 'z' ? truncl(steps) : way == 'u' ? ceill(steps) : floorl(steps)) * u;
  if (fabsl(y) <= most()) return y;
  bool infinite = way == 'n' || way == (x > 0 ? 'u' : 'd');
  return copysignl(infinite ? (Real)INFINITY : most(), x);
}

static Real saturated(Real x) { return x > 0 ? (x < 1 ? x : 1) : 0; }

struct Probe {
  // What is done with a, b and c, of type T, or with the integer n; `r` is the result. `@` stands for the word in the names.
  std::string body;
  Real (*right)(Real a, Real b, Real c, long long n);
  // How many units the result may be off; -1: it is no number of the format, and exact.
  double units;
  // Other arguments are left out.
  Real low = -INFINITY, high = INFINITY;
  // How the result is rounded.
  char way = 'n';
};
static std::vector<Probe> probes;

static void numbers_and_pairs(const std::string& name, const std::string& pair, int count, Real (*right)(Real, Real, Real, long long), double units) {
  const char* arguments[] = {"(a)", "(a, b)", "(a, b, c)"};
  const char* swapped[] = {"(b)", "(b, a)", "(b, c, a)"};
  const char* pairs[] = {"(T2(a, b))", "(T2(a, b), T2(b, a))", "(T2(a, b), T2(b, c), T2(c, a))"};
  probes.push_back({"r = (double)" + name + arguments[count - 1] + ";", right, units});
  std::string same = "T2 p = " + pair + pairs[count - 1] + "; r = same(p.x, " + name + arguments[count - 1] + ") && same(p.y, " + name + swapped[count - 1] + ");";
  probes.push_back({same, [](Real, Real, Real, long long) -> Real { return 1; }, -1});
}

#define RIGHT(value) [](Real a, Real b, Real c, long long n) -> Real { (void)a, (void)b, (void)c, (void)n; return value; }

template <typename N>
static void integers(const char* name, const char* type, Real low, Real high) {
  std::string word = name, cast = type;
  auto nearest = [](Real, Real, Real, long long n) -> Real { return (Real)(N)n; };
  for (char way : {'n', 'z', 'u', 'd'}) {
    std::string suffix = way == 'n' ? "_rn" : std::string("_r") + way;
    probes.push_back({"r = (double)__" + word + "2@" + suffix + "((" + cast + ")n);", nearest, 0, -INFINITY, INFINITY, way});
    auto right = way == 'n' ? RIGHT(rintl(a)) : way == 'z' ? RIGHT(truncl(a)) : way == 'u' ? RIGHT(ceill(a)) : RIGHT(floorl(a));
    probes.push_back({"r = (double)__@2" + word + suffix + "(a);", right, -1, low, high});
  }
  probes.push_back({"r = (double)T((" + cast + ")n);", nearest, 0});
  probes.push_back({"r = (double)(" + cast + ")a;", RIGHT(truncl(a)), -1, low, high});
}

static void fill() {
  numbers_and_pairs("__hneg", "__hneg2", 1, RIGHT(-a), 0);
  numbers_and_pairs("__habs", "__habs2", 1, RIGHT(fabsl(a)), 0);
  numbers_and_pairs("htrunc", "h2trunc", 1, RIGHT(truncl(a)), 0);
  numbers_and_pairs("hceil", "h2ceil", 1, RIGHT(ceill(a)), 0);
  numbers_and_pairs("hfloor", "h2floor", 1, RIGHT(floorl(a)), 0);
  numbers_and_pairs("hrint", "h2rint", 1, RIGHT(rintl(a)), 0);
  numbers_and_pairs("hsin", "h2sin", 1, RIGHT(sinl(a)), 1);
  numbers_and_pairs("hcos", "h2cos", 1, RIGHT(cosl(a)), 1);
  numbers_and_pairs("htanh", "h2tanh", 1, RIGHT(tanhl(a)), 1);
  numbers_and_pairs("hexp", "h2exp", 1, RIGHT(expl(a)), 1);
  numbers_and_pairs("hexp2", "h2exp2", 1, RIGHT(exp2l(a)), 1);
  numbers_and_pairs("hexp10", "h2exp10", 1, RIGHT(powl(10, a)), 1);
  numbers_and_pairs("hlog", "h2log", 1, RIGHT(logl(a)), 1);
  numbers_and_pairs("hlog2", "h2log2", 1, RIGHT(log2l(a)), 1);
  numbers_and_pairs("hlog10", "h2log10", 1, RIGHT(log10l(a)), 1);
  numbers_and_pairs("hsqrt", "h2sqrt", 1, RIGHT(sqrtl(a)), 0);
  numbers_and_pairs("hrsqrt", "h2rsqrt", 1, RIGHT(1 / sqrtl(a)), 1);
  numbers_and_pairs("hrcp", "h2rcp", 1, RIGHT(1 / a), 0);
  numbers_and_pairs("__hadd", "__hadd2", 2, RIGHT(a + b), 0);
  numbers_and_pairs("__hsub", "__hsub2", 2, RIGHT(a - b), 0);
  numbers_and_pairs("__hmul", "__hmul2", 2, RIGHT(a * b), 0);
  numbers_and_pairs("__hadd_rn", "__hadd2_rn", 2, RIGHT(a + b), 0);
  numbers_and_pairs("__hsub_rn", "__hsub2_rn", 2, RIGHT(a - b), 0);
  numbers_and_pairs("__hmul_rn", "__hmul2_rn", 2, RIGHT(a * b), 0);
  numbers_and_pairs("__hdiv", "__h2div", 2, RIGHT(a / b), 0);
  numbers_and_pairs("__hadd_sat", "__hadd2_sat", 2, RIGHT(saturated(a + b)), 0);
  numbers_and_pairs("__hsub_sat", "__hsub2_sat", 2, RIGHT(saturated(a - b)), 0);
  numbers_and_pairs("__hmul_sat", "__hmul2_sat", 2, RIGHT(saturated(a * b)), 0);
  numbers_and_pairs("__hmin", "__hmin2", 2, RIGHT(fminl(a, b)), 0);
  numbers_and_pairs("__hmax", "__hmax2", 2, RIGHT(fmaxl(a, b)), 0);
  numbers_and_pairs("__hmin_nan", "__hmin2_nan", 2, RIGHT(a != a || b != b ? NAN : fminl(a, b)), 0);
  numbers_and_pairs("__hmax_nan", "__hmax2_nan", 2, RIGHT(a != a || b != b ? NAN : fmaxl(a, b)), 0);
  // Of bfloat16 the sum is rounded to f32 first.
  numbers_and_pairs("__hfma", "__hfma2", 3, RIGHT(fmal(a, b, c)), format->fraction == 7);
  numbers_and_pairs("__hfma_sat", "__hfma2_sat", 3, RIGHT(saturated(fmal(a, b, c))), format->fraction == 7);
  numbers_and_pairs("__hfma_relu", "__hfma2_relu", 3, RIGHT(fmaxl(fmal(a, b, c), 0)), format->fraction == 7);
#define COMPARED(name, holds)                                                                                                  \
  numbers_and_pairs("(T)__h" name, "__h" name "2", 2, RIGHT(holds), 0);                                                         \
  probes.push_back({"r = __hb" name "2(T2(a, c), T2(b, c)) == (__h" name "(a, b) && __h" name "(c, c));", RIGHT(1), -1});      \
  probes.push_back({"r = __h" name "2_mask(T2(c, a), T2(a, b)) == ((__h" name "(c, a) ? 0xffffu : 0) | (__h" name "(a, b) ? 0xffff0000u : 0));", RIGHT(1), -1});
#define NAN_OF_TWO (a != a || b != b)
  COMPARED("eq", a == b)
  COMPARED("ne", !NAN_OF_TWO && a != b)
  COMPARED("lt", a < b)
  COMPARED("le", a <= b)
  COMPARED("gt", a > b)
  COMPARED("ge", a >= b)
  COMPARED("equ", NAN_OF_TWO || a == b)
  COMPARED("neu", NAN_OF_TWO || a != b)
  COMPARED("ltu", NAN_OF_TWO || a < b)
  COMPARED("leu", NAN_OF_TWO || a <= b)
  COMPARED("gtu", NAN_OF_TWO || a > b)
  COMPARED("geu", NAN_OF_TWO || a >= b)
  probes.push_back({"r = (a == b) + 2 * (a != b) + 4 * (a < b) + 8 * (a <= b) + 16 * (a > b) + 32 * (a >= b);",
                    RIGHT((a == b) + 2 * (a != b) + 4 * (a < b) + 8 * (a <= b) + 16 * (a > b) + 32 * (a >= b)), -1});
  probes.push_back({"T2 p(a, c), q(b, c); r = (p == q) + 2 * (p != q) + 4 * (p < q) + 8 * (p <= q) + 16 * (p > q) + 32 * (p >= q);",
                    RIGHT((a == b && c == c) + 2 * !(a == b && c == c) + 8 * (a <= b && c == c) + 32 * (a >= b && c == c)), -1});
  probes.push_back({"r = __hisnan(a) + 2 * (double)__hisnan2(T2(b, a)).y + 4 * __hisinf(a) + 16 * (double)__hisinf2(T2(a, b)).x;",
                    RIGHT((a != a) * 3 + 4 * (fabsl(a) == INFINITY ? (a < 0 ? -1 : 1) : 0) + 16 * (fabsl(a) == INFINITY)), -1});
  // Operators, one rounding each.
  probes.push_back({"r = (double)(a + b);", RIGHT(a + b), 0});
  probes.push_back({"r = (double)(a - b);", RIGHT(a - b), 0});
  probes.push_back({"r = (double)(a * b);", RIGHT(a * b), 0});
  probes.push_back({"r = (double)(a / b);", RIGHT(a / b), 0});
  probes.push_back({"T v = a; v += b; v *= c; r = (double)-+v;", RIGHT(-rounded(a + b) * c), 0});
  probes.push_back({"T v = a; v -= b; v /= c; r = (double)v;", RIGHT(rounded(a - b) / c), 0});
  probes.push_back({"T v = a; T w = v++; ++v; r = same(w, a) ? (double)v : 7e7;", RIGHT(rounded(a + 1) + 1), 0});
  probes.push_back({"T v = a; T w = v--; --v; r = same(w, a) ? (double)v : 7e7;", RIGHT(rounded(a - 1) - 1), 0});
  probes.push_back({"T2 p(a, b); p += T2(b, a); p *= T2(c, c); p -= T2(a, a); p /= T2(b, b); ++p; --p; p = -(+p); r = (double)p.x;",
                    RIGHT(-rounded(rounded(rounded(rounded(rounded(a + b) * c) - a) / b) + 1) + 1), 0});
  probes.push_back({"T2 p = (T2(a, b) + T2(b, a)) * T2(c, b) - T2(b, b) / T2(a, c); r = same(p.x, (a + b) * c - b / a) && same(p.y, (b + a) * b - b / c);", RIGHT(1), -1});
  probes.push_back({"r = (a ? 1 : 0) + 2 * !a;", RIGHT((a != 0) + 2 * !(a != 0)), -1});
  // Conversions.
  probes.push_back({"r = (double)__@2float(a);", RIGHT(a), 0});
  probes.push_back({"r = (float)a;", RIGHT(a), 0});
  for (const char* name : {"__float2@", "__float2@_rn", "T"}) probes.push_back({std::string("r = (double)") + name + "(f);", RIGHT((float)a * 1.001f), 0});
  probes.push_back({"r = (double)__float2@_rz(f);", RIGHT((float)a * 1.001f), 0, -INFINITY, INFINITY, 'z'});
  probes.push_back({"r = (double)__float2@_ru(f);", RIGHT((float)a * 1.001f), 0, -INFINITY, INFINITY, 'u'});
  probes.push_back({"r = (double)__float2@_rd(f);", RIGHT((float)a * 1.001f), 0, -INFINITY, INFINITY, 'd'});
  // A double near the middle of two numbers.
  probes.push_back({"r = (double)__double2@(d);", RIGHT((double)a * (1 + ldexp(1, -format->fraction - 1) + 0x1p-40)), 0});
  probes.push_back({"r = (double)T(d);", RIGHT((double)a * (1 + ldexp(1, -format->fraction - 1) + 0x1p-40)), 0});
  probes.push_back({"r = __@_as_short(a) == (short)bits && __@_as_ushort(a) == bits && same(__short_as_@(bits), a) && same(__ushort_as_@(bits), a);", RIGHT(1), -1});
  probes.push_back({"T_RAW raw = a; T back = raw; T2_RAW raws = T2(a, b); T2 pair = raws; r = raw.x == bits && same(back, a) && raws.x == bits && same(pair.y, b);", RIGHT(1), -1});
  probes.push_back({"T2 p = __@2@2(a), q = __halves2@2(a, b); r = same(p.x, a) && same(p.y, a) && same(q.x, a) && same(q.y, b);", RIGHT(1), -1});
  probes.push_back({"T2 p = __float2@2_rn(f), q = __floats2@2_rn(f, 2); float2 v; v.x = 3; v.y = f; T2 s = __float22@2_rn(v); "
                    "r = same(p.x, T(f)) && same(p.y, T(f)) && same(q.x, T(f)) && same(q.y, T(2)) && same(s.x, T(3)) && same(s.y, T(f));", RIGHT(1), -1});
  probes.push_back({"T2 p(a, b); float2 v = __@22float2(p); r = same(T(v.x), a) && same(T(v.y), b) && same(T(__low2float(p)), a) && same(T(__high2float(p)), b);", RIGHT(1), -1});
  probes.push_back({"T2 p(a, b), q(b, c); r = same(__low2@(p), a) && same(__high2@(p), b) && pairs(__low2@2(p), a, a) && pairs(__high2@2(p), b, b) && "
                    "pairs(__lows2@2(p, q), a, b) && pairs(__highs2@2(p, q), b, c) && pairs(__lowhigh2highlow(p), b, a);", RIGHT(1), -1});
  integers<short>("short", "short", -32768, 32767);
  integers<unsigned short>("ushort", "unsigned short", 0, 65000);
  integers<int>("int", "int", -0x1p30, 0x1p30);
  integers<unsigned>("uint", "unsigned", 0, 0x1p31);
  integers<long long>("ll", "long long", -0x1p62, 0x1p62);
  integers<unsigned long long>("ull", "unsigned long long", 0, 0x1p63);
  // Between lanes and in memory.
  probes.push_back({"r = (double)__shfl_xor(__shfl_xor(a, 1), 1);", RIGHT(a), 0});
  for (const char* name : {"__ldg", "__ldca", "__ldcg", "__ldcs"}) probes.push_back({std::string("r = (double)") + name + "(&a);", RIGHT(a), 0});
  for (const char* name : {"atomicAdd", "unsafeAtomicAdd"})
    probes.push_back({std::string("__shared__ T2 sum; __syncthreads(); if (threadIdx.x == 0) sum = T2(0, 0); __syncthreads(); ") + name +
                          "(&sum, T2(1, 2)); __syncthreads(); r = (double)sum.x + 1000 * (double)sum.y;", RIGHT(64 + 128000), -1});
  // Of numbers of 32 bits, which headers of ROCm 5 do not have.
  probes.push_back({"__shared__ float most; __shared__ int least; __syncthreads(); if (threadIdx.x == 0) most = 0, least = 0; __syncthreads(); unsafeAtomicMax(&most, 1.0f + threadIdx.x); "
                    "safeAtomicMax(&most, 2.0f); safeAtomicMin(&least, -(int)threadIdx.x); unsafeAtomicMin(&least, 5); __syncthreads(); r = most - least;", RIGHT(64 + 63), -1});
  if (format->fraction == 10) {
    probes.push_back({"__half2 p = make_half2(a, b); r = pairs(p, a, b) && same(HIPRT_INF_FP16, __half(1e9f)) && HIPRT_ONE_FP16 == half(1) && HIPRT_NAN_FP16 != HIPRT_NAN_FP16;", RIGHT(1), -1});
    // Sums of f32, of which this one is exact.
    probes.push_back({"r = amd_mixed_dot(__half2(a, 0), __half2(b, 5), 0, false);", RIGHT(a * b), -1});
    probes.push_back({"r = amd_mixed_dot(__half2(a, 0), __half2(b, 5), 0, true);", RIGHT(saturated(a * b)), -1});
  } else {
    probes.push_back({"hip_bfloat16 v((float)a), w((float)b); v += w; v *= hip_bfloat16((float)c); r = -+v;", RIGHT(-rounded(a + b) * c), 0});
    probes.push_back({"hip_bfloat16 v((float)a), w((float)b); v -= w; v /= hip_bfloat16((float)c); r = v;", RIGHT(rounded(a - b) / c), 0});
    probes.push_back({"hip_bfloat16 v((float)a); ++v; --v; r = v == hip_bfloat16::round_to_bfloat16(v) ? (float)v : v != v ? (float)v : 7e7f;", RIGHT(rounded(a + 1) - 1), 0});
    probes.push_back({"r = (float)hip_bfloat16(f, hip_bfloat16::truncate) + (float)hip_bfloat16::round_to_bfloat16(f, hip_bfloat16::truncate) * 0;", RIGHT((float)a * 1.001f), 0, -0x1p100, 0x1p100, 'z'});
  }
}

static void replace(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
}

constexpr int THREADS = 64, COUNT = 64 * 24;

static void check() {
  probes.clear();
  fill();
  std::string source = R"(
#include <hip/hip_bf16.h>
#include <hip/hip_bfloat16.h>
typedef TYPE T;
typedef TYPE2 T2;
typedef TYPE_raw T_RAW;
typedef TYPE2_raw T2_RAW;
template <typename N> __device__ bool same(N x, N y) { return __builtin_bit_cast(unsigned short, x) == __builtin_bit_cast(unsigned short, y) || (x != x && y != y); }
__device__ bool pairs(T2 p, T x, T y) { return same(p.x, x) && same(p.y, y); }
)";
  int count = 0;
  for (const Probe& probe : probes) {
    source += "extern \"C\" __global__ void k" + std::to_string(count++) +
              "(const unsigned short* x, const unsigned short* y, const unsigned short* z, double* out) {\n"
              "for (int i = threadIdx.x; i < " + std::to_string(COUNT) + "; i += blockDim.x) { unsigned short bits = x[i]; T a = __ushort_as_@(bits), "
              "b = __ushort_as_@(y[i]), c = __ushort_as_@(z[i]); float f = (float)a * 1.001f; double d = (double)a * MIDDLE; "
              "long long n = (long long)((unsigned long long)bits << 48 | (unsigned long long)y[i] << 32 | z[i]) >> (y[i] & 63); double r = 0; " +
              probe.body + " out[i] = r; } }\n";
  }
  replace(source, "MIDDLE", format->fraction == 10 ? "(1 + 0x1p-11 + 0x1p-40)" : "(1 + 0x1p-8 + 0x1p-40)");
  replace(source, "TYPE", format->type);
  replace(source, "@", format->word);
  Rtc rtc;
  // Operators of one expression may be fused, as those of f32 may.
  if (!TRUE(rtc.compile(source, {"-ffp-contract=off"}))) return;
  std::vector<unsigned short> x(COUNT), y(COUNT), z(COUNT);
  unsigned seed = 1;
  auto draw = [&] { return seed = seed * 1664525u + 1013904223u, seed >> 16; };
  for (int i = 0; i < COUNT; i++) {
    // All of them at equal distances; a third of the others near one, in which sums and differences are rounded.
    x[i] = (unsigned short)(i * 43);
    unsigned one = format->fraction == 10 ? 0x3c00 : 0x3f80, near = x[i] & 0x7fff;
    y[i] = (unsigned short)(i % 3 == 0 ? draw() : i % 3 == 1 ? one + draw() % 512 : (near + draw() % 64) & 0x7fff);
    z[i] = (unsigned short)(i % 2 == 0 ? draw() : one - 256 + draw() % 512);
    if (i % 64 == 5) y[i] = x[i];
    // A signaling NaN is no number even to a minimum.
    for (auto* bits : {&x[i], &y[i], &z[i]})
      if (value_of(*bits) != value_of(*bits)) *bits |= 1 << (format->fraction - 1);
  }
  unsigned short* in[3];
  double* out;
  int part = 0;
  for (const auto* values : {&x, &y, &z}) {
    OK(hipMalloc(&in[part], COUNT * 2));
    OK(hipMemcpy(in[part++], values->data(), COUNT * 2, hipMemcpyHostToDevice));
  }
  OK(hipMalloc(&out, COUNT * sizeof(double)));
  count = 0;
  for (const Probe& probe : probes) {
    std::string name = "k" + std::to_string(count++);
    std::vector<double> got(COUNT);
    OK(rtc.launch(name.c_str(), THREADS, {in[0], in[1], in[2], out}));
    OK(hipMemcpy(got.data(), out, COUNT * sizeof(double), hipMemcpyDeviceToHost));
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
      Real a = value_of(x[i]), b = value_of(y[i]), c = value_of(z[i]);
      // NaN has no limits.
      if (probe.low != -INFINITY && !(a >= probe.low && a <= probe.high)) continue;
      long long n = (long long)((unsigned long long)x[i] << 48 | (unsigned long long)y[i] << 32 | z[i]) >> (y[i] & 63);
      Real right = probe.right(a, b, c, n);
      if (probe.units >= 0) right = rounded(right, probe.way);
      // The results of f32 that are too small for it are 0 where the card does so.
      Real allowed = probe.units <= 0 ? 0 : probe.units * (format->fraction == 7 ? fmaxl(unit(right), 0x1p-126L) : unit(right));
      bool same = (right != right && got[i] != got[i]) || right == got[i] || fabsl(right - got[i]) <= allowed;
      // From the largest number to infinity it is one unit, too.
      same |= probe.units > 0 && fabsl(right) >= most() && fabs(got[i]) >= most() && (right > 0) == (got[i] > 0);
      if (!same && wrong++ < 3) printf("%s: %s of %.9Lg, %.9Lg, %.9Lg, %lld is %.12g, not %.12Lg\n", format->word, probe.body.c_str(), a, b, c, n, got[i], right);
    }
    if (wrong) wrong_values++;
  }
  printf("%s: %d probes\n", format->word, count);
}

int main() {
  for (const Format& each : formats) {
    format = &each;
    check();
  }
  return finish();
}
