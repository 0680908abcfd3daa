// Faulty: a kernel reads memory that nobody has written.
#include "check.h"

__global__ void copy(const int* from, int* to) {
  to[threadIdx.x] = from[threadIdx.x];  // kernel line
}

int main() {
  int *p, *q;
  OK(hipMalloc(&p, 256));
  OK(hipMalloc(&q, 256));
  OK(hipMemset(p, 0, 128));
  copy<<<1, 64>>>(p, q);  // host line
  OK(hipDeviceSynchronize());
  OK(hipFree(p));
  OK(hipFree(q));
  return finish();
}
