// Kernels with functions that are not inlined, recursion, and calls through pointers.
#include "check.h"

__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __attribute__((noinline)) int twice(int x) { return 2 * x; }
__device__ __attribute__((noinline)) int squared(int x) { return x * x; }

__global__ void kernel(int* out) {
  int i = threadIdx.x;
  int (*volatile f)(int) = i % 2 ? twice : squared;
  out[i] = f(i) + 1000 * fibonacci(i % 8);
}

int main() {
  int *p, out[64], fib[8] = {0, 1, 1, 2, 3, 5, 8, 13};
  OK(hipMalloc(&p, sizeof out));
  kernel<<<1, 64>>>(p);
  OK(hipMemcpy(out, p, sizeof out, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) EQUAL(out[i], (i % 2 ? 2 * i : i * i) + 1000 * fib[i % 8]);
  OK(hipFree(p));
  return finish();
}
