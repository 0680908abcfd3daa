// Vectors: allocated, copied, added by a kernel, copied back.
#include "check.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  int i = place();
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  const int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; i++) a[i] = i, b[i] = 2 * i;
  float *da, *db, *dc;
  OK(hipMalloc(&da, n * sizeof(float)));
  OK(hipMalloc(&db, n * sizeof(float)));
  OK(hipMalloc(&dc, n * sizeof(float)));
  OK(hipMemcpy(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice));
  OK(hipMemcpy(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
  OK(hipGetLastError());
  OK(hipMemcpy(c.data(), dc, n * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EQUAL(c[i], 3.0f * i);
  OK(hipFree(da));
  OK(hipFree(db));
  OK(hipFree(dc));
  return finish();
}
