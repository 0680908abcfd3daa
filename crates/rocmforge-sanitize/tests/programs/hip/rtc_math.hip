// hiprtc without ROCm's device library: the errors of its mathematics, in units of the last place, against the C library's long double.
#include <cmath>

#include "rtc.h"

typedef long double Real;

struct Function {
  const char* name;
  // Of one number, or of two.
  Real (*one)(Real);
  Real (*two)(Real, Real);
  double low, high;
  // The most that is allowed, for f64 and for f32.
  double most, most_f32;
};

static Real exp10_of(Real x) { return powl(10, x); }
static Real cbrt_inverse(Real x) { return 1 / cbrtl(x); }
static Real square_root_inverse(Real x) { return 1 / sqrtl(x); }
// Exact arguments of the quarter turns.
static Real sine_of_pi(Real x) {
  Real r = x - 2 * rintl(x / 2), n = rintl(2 * r), f = (r - n / 2) * acosl(-1.0L);
  int quadrant = (int)n & 3;
  Real v = quadrant & 1 ? cosl(f) : sinl(f);
  return quadrant & 2 ? -v : v;
}
static Real cosine_of_pi(Real x) { return sine_of_pi(fabsl(x) + 0.5L); }
static Real distribution(Real x) { return erfcl(-x / sqrtl(2.0L)) / 2; }
// Inverses, by halving the interval.
static Real inverse(Real (*rises)(Real), Real y, Real low, Real high) {
  for (int i = 0; i < 120; i++) {
    Real middle = (low + high) / 2;
    (rises(middle) < y ? low : high) = middle;
  }
  return low;
}
static Real erfc_mirrored(Real x) { return erfcl(-x); }
static Real inverse_erf(Real y) { return y < 0 ? -inverse_erf(-y) : inverse(erfl, y, 0, 7); }
static Real inverse_erfc(Real y) { return -inverse(erfc_mirrored, y, -28, 28); }
static Real inverse_distribution(Real y) { return inverse(distribution, y, -40, 40); }
static Real scaled_erfc(Real x) { return expl(x * x) * erfcl(x); }

static const Function functions[] = {
    {"exp", expl, nullptr, -740, 709, 1, 1},
    {"exp2", exp2l, nullptr, -1070, 1020, 1, 1},
    {"exp10", exp10_of, nullptr, -320, 307, 1, 1},
    {"expm1", expm1l, nullptr, -3, 3, 4, 1},
    // LLVM writes out two of f32.
    {"log", logl, nullptr, 1e-3, 1e3, 1, 2},
    {"log2", log2l, nullptr, 0.5, 2, 1, 1},
    {"log10", log10l, nullptr, 1e-150, 1e150, 1, 2},
    {"log1p", log1pl, nullptr, -0.9, 3, 1, 1},
    {"pow", nullptr, powl, 0.1, 300, 1, 1},
    {"cbrt", cbrtl, nullptr, -1e30, 1e30, 1, 1},
    {"rcbrt", cbrt_inverse, nullptr, -1e30, 1e30, 1, 1},
    {"sqrt", sqrtl, nullptr, 0, 1e30, 1, 1},
    {"rsqrt", square_root_inverse, nullptr, 1e-3, 1e30, 2, 2},
    {"sin", sinl, nullptr, -10, 10, 1, 1},
    {"cos", cosl, nullptr, -10, 10, 1, 1},
    {"sin", sinl, nullptr, 1e5, 1e15, 1, 1},
    {"cos", cosl, nullptr, 1e5, 1e300, 1, 1},
    {"tan", tanl, nullptr, -10, 1e6, 4, 1},
    {"sinpi", sine_of_pi, nullptr, -9, 9, 1, 1},
    {"cospi", cosine_of_pi, nullptr, -9, 9, 1, 1},
    {"asin", asinl, nullptr, -1, 1, 4, 1},
    {"acos", acosl, nullptr, -1, 1, 4, 1},
    {"atan", atanl, nullptr, -5, 5, 4, 1},
    {"atan2", nullptr, atan2l, -5, 5, 4, 1},
    {"sinh", sinhl, nullptr, -3, 3, 4, 1},
    {"sinh", sinhl, nullptr, 20, 710, 4, 1},
    {"cosh", coshl, nullptr, -710, 710, 4, 1},
    {"tanh", tanhl, nullptr, -3, 3, 4, 1},
    {"asinh", asinhl, nullptr, -5, 1e20, 4, 1},
    {"acosh", acoshl, nullptr, 1, 10, 4, 1},
    {"atanh", atanhl, nullptr, -0.99, 0.99, 4, 1},
    {"erf", erfl, nullptr, -3, 3, 4, 1},
    {"erfc", erfcl, nullptr, -3, 26, 4, 1},
    {"erfcx", scaled_erfc, nullptr, -2, 20, 4, 1},
    {"normcdf", distribution, nullptr, -30, 5, 4, 1},
    {"erfinv", inverse_erf, nullptr, -0.999, 0.999, 16, 1},
    {"erfcinv", inverse_erfc, nullptr, 1e-200, 0.5, 16, 1},
    {"normcdfinv", inverse_distribution, nullptr, 1e-100, 0.2, 16, 1},
    {"tgamma", tgammal, nullptr, -10, 170, 16, 1},
    {"lgamma", lgammal, nullptr, 0.1, 20, 4, 1},
    {"lgamma", lgammal, nullptr, 20, 1e6, 4, 1},
    {"lgamma", lgammal, nullptr, -5, 0, 4, 1},
    {"fmod", nullptr, fmodl, 1e-3, 1e30, 0, 0},
    {"remainder", nullptr, remainderl, 1e-3, 1e30, 0, 0},
    {"hypot", nullptr, hypotl, -1e200, 1e200, 1, 1},
};

constexpr int COUNT = 512;

// A number between two others: evenly, or by its exponent where they are far apart.
static double between(double low, double high, unsigned& seed) {
  seed = seed * 1664525u + 1013904223u;
  double part = (seed >> 8) / double(1 << 24);
  if (low > 0 && high / low > 1e4) return low * pow(high / low, part);
  return low + (high - low) * part;
}

template <class T>
static double worst(Rtc& rtc, const std::string& kernel, const Function& function, unsigned seed) {
  std::vector<T> x(COUNT), y(COUNT), got(COUNT);
  double low = function.low, high = function.high;
  if (sizeof(T) == 4) {
    // Arguments and results are inside the range of f32.
    low = fmax(low, strncmp(function.name, "exp", 3) == 0 ? -30 : -1e30);
    high = fmin(high, 1e30);
    for (const char* fast : {"exp", "exp2", "exp10", "sinh", "cosh", "tgamma"}) {
      if (strcmp(function.name, fast) == 0) {
        high = fmin(high, 30);
        low = fmin(fmax(low, -30), 20);
      }
    }
    if (strcmp(function.name, "erfc") == 0) high = 8;
    if (strcmp(function.name, "normcdf") == 0) low = -12;
    if (strcmp(function.name, "hypot") == 0) low = -1e15, high = 1e15;
    if (low > 0) low = fmax(low, 1e-30);
  }
  for (int i = 0; i < COUNT; i++) {
    x[i] = (T)between(low, high, seed);
    y[i] = (T)between(low, high, seed);
    if (strcmp(function.name, "pow") == 0) y[i] = (T)between(-8, 8, seed);
    if (strcmp(function.name, "pow") == 0 && i % 2 == 0) x[i] = 1 + (x[i] - 150) / (T)1e5, y[i] *= (T)1e3;
    if (strcmp(function.name, "hypot") == 0 && i % 2 == 0) y[i] = x[i] * (T)0.7;
    if (strcmp(function.name, "fmod") == 0 && i % 2 == 0) y[i] = x[i] / 7;
  }
  T *dx, *dy, *out;
  OK(hipMalloc(&dx, COUNT * sizeof(T)));
  OK(hipMalloc(&dy, COUNT * sizeof(T)));
  OK(hipMalloc(&out, COUNT * sizeof(T)));
  OK(hipMemcpy(dx, x.data(), COUNT * sizeof(T), hipMemcpyHostToDevice));
  OK(hipMemcpy(dy, y.data(), COUNT * sizeof(T), hipMemcpyHostToDevice));
  OK(rtc.launch(kernel.c_str(), COUNT, {dx, dy, out}));
  OK(hipMemcpy(got.data(), out, COUNT * sizeof(T), hipMemcpyDeviceToHost));
  double most = 0;
  for (int i = 0; i < COUNT; i++) {
    Real right = function.one ? function.one(x[i]) : function.two(x[i], y[i]);
    T near = fabs((T)right);
    Real unit = sizeof(T) == 4 ? (Real)nextafterf(near, INFINITY) - (Real)near : (Real)nextafter((double)near, INFINITY) - (Real)near;
    // Near its zeros only the absolute error is small.
    if (strcmp(function.name, "lgamma") == 0) unit = fmaxl(unit, 2.5e-15L);
    double error = right == (Real)got[i] ? 0 : (double)(fabsl(right - (Real)got[i]) / unit);
    if (!(error <= most)) most = error != error ? INFINITY : error;
    if (error != error || error > 100) {
      if (++wrong_values < 20) printf("%s(%.17g, %.17g) is %.17g, not %.20Lg\n", kernel.c_str(), (double)x[i], (double)y[i], (double)got[i], right);
    }
  }
  OK(hipFree(dx));
  OK(hipFree(dy));
  OK(hipFree(out));
  return most;
}

int main() {
  std::string source;
  int count = 0;
  for (const Function& function : functions) {
    for (const char* type : {"double", "float"}) {
      std::string suffix = *type == 'f' ? "f" : "", name = std::string("of_") + type + std::to_string(count);
      source += "extern \"C\" __global__ void " + name + "(const " + type + "* x, const " + type + "* y, " + type + "* out) { int i = threadIdx.x; out[i] = " +
                function.name + suffix + (function.one ? "(x[i])" : "(x[i], y[i])") + "; }\n";
    }
    count++;
  }
  Rtc rtc;
  if (!TRUE(rtc.compile(source))) return finish();
  count = 0;
  for (const Function& function : functions) {
    double error = worst<double>(rtc, "of_double" + std::to_string(count), function, count), error_f32 = worst<float>(rtc, "of_float" + std::to_string(count), function, count);
    count++;
    bool fits = error <= function.most && error_f32 <= function.most_f32;
    printf("%-10s %8.3f of %3g, f32 %8.3f of %g%s\n", function.name, error, function.most, error_f32, function.most_f32, fits ? "" : "   TOO MUCH");
    wrong_values += !fits;
  }
  return finish();
}
