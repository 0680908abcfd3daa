// Faulty: a kernel reads and writes one element past the end. HIP answers that an illegal address was used.
#include "check.h"

__global__ void add(const float* a, float* c, int n) {
  int i = place();
  if (i <= n) c[i] = a[i] + 1;  // kernel line
}

int main() {
  const int n = 1000;
  float *a, *c;
  OK(hipMalloc(&a, n * sizeof(float)));
  OK(hipMalloc(&c, n * sizeof(float)));  // allocation line
  OK(hipMemset(a, 0, n * sizeof(float)));
  add<<<(n + 255) / 256, 256>>>(a, c, n);  // host line
  ANSWERS(hipErrorIllegalAddress, hipDeviceSynchronize());
  return finish();
}
