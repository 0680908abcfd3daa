// A kernel reads a block of device malloc that it has freed.
#include "check.h"

__global__ void late(int* out) {
  volatile int* block = (volatile int*)malloc(16 * sizeof(int));
  if (!block) return;
  for (int k = 0; k < 16; ++k) block[k] = k;
  free((void*)block);
  out[threadIdx.x] = block[3];  // kernel line
}

int main() {
  int* out;
  OK(hipMalloc(&out, 64 * 4));
  late<<<1, 8>>>(out);  // host line
  printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
  return 0;
}
