// The other translation unit of two_units.hip.
#include "check.h"

namespace {
__device__ int own = 2;
__global__ void kernel(int* p) { *p = 200 + own++; }
}  // namespace

int other_unit(int* p) {
  int got = 0;
  kernel<<<1, 1>>>(p);
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  return got;
}
