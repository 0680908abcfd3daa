// Two translation units with kernels of equal names in anonymous name spaces, and equal names of static variables.
#include "check.h"

int other_unit(int* p);

namespace {
__device__ int own = 1;
__global__ void kernel(int* p) { *p = 100 + own++; }
}  // namespace

int main() {
  int* p;
  OK(hipMalloc(&p, 4));
  for (int i = 0; i < 3; i++) {
    int got = 0;
    kernel<<<1, 1>>>(p);
    OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
    EQUAL(got, 101 + i);
    EQUAL(other_unit(p), 202 + i);
  }
  int value = 0;
  OK(hipMemcpyFromSymbol(&value, HIP_SYMBOL(own), 4));
  EQUAL(value, 4);
  OK(hipFree(p));
  return finish();
}
