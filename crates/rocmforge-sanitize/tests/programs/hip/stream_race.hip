// Faulty: two streams use the same memory, and no event orders them.
#include "check.h"

__global__ void write(int* p) {
  p[threadIdx.x] = threadIdx.x;  // kernel line
}
__global__ void read(const int* p, int* out) { out[threadIdx.x] = p[threadIdx.x]; }

int main() {
  int *p, *q;
  OK(hipMalloc(&p, 256));
  OK(hipMalloc(&q, 256));
  hipStream_t one, two;
  OK(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
  OK(hipStreamCreateWithFlags(&two, hipStreamNonBlocking));
  write<<<1, 64, 0, one>>>(p);
  read<<<1, 64, 0, two>>>(p, q);  // host line
  OK(hipDeviceSynchronize());
  OK(hipStreamDestroy(one));
  OK(hipStreamDestroy(two));
  OK(hipFree(p));
  OK(hipFree(q));
  return finish();
}
