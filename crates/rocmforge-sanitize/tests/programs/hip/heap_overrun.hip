// A kernel writes beyond a block of device malloc, and uses one that it has freed.
#include "check.h"

__global__ void overrun(int* out, int index) {
  volatile int* block = (volatile int*)malloc(16 * sizeof(int));
  if (!block) return;
  for (int k = 0; k < 16; ++k) block[k] = k;
  block[index] = 1;  // kernel line
  out[threadIdx.x] = block[3];
  free((void*)block);
}

int main() {
  int* out;
  OK(hipMalloc(&out, 64 * 4));
  overrun<<<1, 64>>>(out, 15);
  OK(hipDeviceSynchronize());
  overrun<<<1, 64>>>(out, 16);  // host line
  printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
  return 0;
}
