// Faulty: a loop that the compiler unrolls writes past the end. It is one line, however many instructions it has become.
#include "check.h"

__global__ void fill(int* p) {
#pragma unroll
  for (int i = 0; i < 8; i++) p[threadIdx.x + i * 64] = i; // kernel line
}

int main() {
  int* p;
  OK(hipMalloc(&p, 4 * 64 * sizeof *p));
  fill<<<1, 64>>>(p);
  (void)hipDeviceSynchronize();
  return 0;
}
