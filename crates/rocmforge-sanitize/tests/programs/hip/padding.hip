// Faulty: a kernel writes 4 KiB past a buffer, into the next one, where only enough padding shows it.
#include "check.h"

__global__ void write(int* p) { p[1024] = 1; }

int main() {
  int *small, *next;
  OK(hipMalloc(&small, 256));
  OK(hipMalloc(&next, 64 << 10));
  write<<<1, 1>>>(small);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 3;
}
