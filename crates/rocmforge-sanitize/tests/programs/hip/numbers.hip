// Arithmetic of all widths: division, shifts, conversions, halves, fused and rounded.
#include "check.h"

#include <cmath>

__global__ void integers(const long long* a, const long long* b, long long* out, int n) {
  int i = place();
  if (i >= n) return;
  out[6 * i] = a[i] / b[i];
  out[6 * i + 1] = a[i] % b[i];
  out[6 * i + 2] = (int)a[i] / (int)b[i];
  out[6 * i + 3] = (unsigned)a[i] % (unsigned)b[i];
  out[6 * i + 4] = a[i] * b[i];
  out[6 * i + 5] = __popcll(a[i]) + (a[i] >> (b[i] & 63));
}
__global__ void floats(const double* a, double* out, int n) {
  int i = place();
  if (i >= n) return;
  float f = a[i];
  _Float16 h = (_Float16)f;
  out[4 * i] = a[i] / 3.0;
  out[4 * i + 1] = f / 3.0f;
  out[4 * i + 2] = (float)h;
  out[4 * i + 3] = __builtin_fma(a[i], a[i], -1.0);
}

int main() {
  const long long a[] = {7, -7, 123456789012345, -99999999999, 5, 1ll << 40}, b[] = {2, 2, 1001, 77, -3, 65537};
  const int n = 6;
  long long *da, *db, *dout, out[6 * n];
  OK(hipMalloc(&da, sizeof a));
  OK(hipMalloc(&db, sizeof b));
  OK(hipMalloc(&dout, sizeof out));
  OK(hipMemcpy(da, a, sizeof a, hipMemcpyHostToDevice));
  OK(hipMemcpy(db, b, sizeof b, hipMemcpyHostToDevice));
  integers<<<1, 32>>>(da, db, dout, n);
  OK(hipMemcpy(out, dout, sizeof out, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) {
    EQUAL(out[6 * i], a[i] / b[i]);
    EQUAL(out[6 * i + 1], a[i] % b[i]);
    EQUAL(out[6 * i + 2], (int)a[i] / (int)b[i]);
    EQUAL(out[6 * i + 3], (unsigned)a[i] % (unsigned)b[i]);
    EQUAL(out[6 * i + 4], a[i] * b[i]);
    EQUAL(out[6 * i + 5], __builtin_popcountll(a[i]) + (a[i] >> (b[i] & 63)));
  }
  const double x[] = {1.0, -2.5, 1e-5, 65504.0, 1.0 / 3.0, 1e300};
  double *dx, *dy, y[4 * n];
  OK(hipMalloc(&dx, sizeof x));
  OK(hipMalloc(&dy, sizeof y));
  OK(hipMemcpy(dx, x, sizeof x, hipMemcpyHostToDevice));
  floats<<<1, 32>>>(dx, dy, n);
  OK(hipMemcpy(y, dy, sizeof y, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) {
    EQUAL(y[4 * i], x[i] / 3.0);
    // One unit in the last place is what HIP promises of divisions of f32 here.
    float third = (float)x[i] / 3.0f;
    TRUE(y[4 * i + 1] == third || std::fabs(y[4 * i + 1] - third) <= std::fabs(third) * 1.2e-7f);
    EQUAL(y[4 * i + 2], (double)(float)(_Float16)(float)x[i]);
    EQUAL(y[4 * i + 3], std::fma(x[i], x[i], -1.0));
  }
  OK(hipFree(da));
  OK(hipFree(db));
  OK(hipFree(dout));
  OK(hipFree(dx));
  OK(hipFree(dy));
  return finish();
}
