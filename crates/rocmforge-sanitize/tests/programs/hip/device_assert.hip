// Faulty: a failed assert in a kernel, by the code of AMD's device library.
#include "check.h"

#include <cassert>

__global__ void check(const int* p, int limit) {
  assert(p[threadIdx.x] < limit);  // kernel line
}

int main() {
  int host[32], *p;
  for (int n = 0; n < 32; ++n) host[n] = n;
  OK(hipMalloc(&p, sizeof host));
  OK(hipMemcpy(p, host, sizeof host, hipMemcpyHostToDevice));
  check<<<1, 32>>>(p, 32);
  OK(hipDeviceSynchronize());
  check<<<1, 32>>>(p, 30);  // host line
  const hipError_t failed = hipDeviceSynchronize();
  printf("%s\n", hipGetErrorName(failed));
  TRUE(failed != hipSuccess);
  return finish();
}
