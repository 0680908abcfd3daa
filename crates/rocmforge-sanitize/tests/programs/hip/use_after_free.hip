// Faulty: memory is freed before the kernel that uses it is launched.
#include "check.h"

__global__ void fill(int* p) {
  p[threadIdx.x] = threadIdx.x;  // kernel line
}

int main() {
  int* p;
  OK(hipMalloc(&p, 256));
  OK(hipFree(p));
  fill<<<1, 64>>>(p);  // host line
  ANSWERS(hipErrorIllegalAddress, hipDeviceSynchronize());
  return finish();
}
