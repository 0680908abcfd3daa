// Reads LDS that nobody has written, and drops it: a warning, and no finding.
#include "check.h"

__global__ void peek(int* p) {
  __shared__ volatile int tile[32];
  (void)tile[threadIdx.x];
  p[threadIdx.x] = 7;
}

int main() {
  int* p;
  OK(hipMalloc(&p, 128));
  peek<<<1, 32>>>(p);
  std::vector<int> out(32);
  OK(hipMemcpy(out.data(), p, 128, hipMemcpyDeviceToHost));
  for (int value : out) EQUAL(value, 7);
  OK(hipFree(p));
  return finish();
}
