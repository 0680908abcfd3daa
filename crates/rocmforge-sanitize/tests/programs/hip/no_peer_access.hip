// A kernel that reads the memory of another device without access to it.
#include "check.h"

__global__ void set(int* p) { p[place()] = place(); }
__global__ void copy(const int* from, int* to) {
  to[place()] = from[place()];  // kernel line
}

int main() {
  int *a, *b, can = 9;
  OK(hipMalloc(&a, 256));
  set<<<1, 64>>>(a);
  OK(hipDeviceSynchronize());
  OK(hipSetDevice(1));
  OK(hipMalloc(&b, 256));
  OK(hipDeviceCanAccessPeer(&can, 1, 0));
  printf("can access: %d\n", can);
  copy<<<1, 64>>>(a, b);  // host line
  ANSWERS(hipErrorIllegalAddress, hipDeviceSynchronize());
  // The other device goes on.
  OK(hipSetDevice(0));
  OK(hipDeviceSynchronize());
  OK(hipFree(a));
  return finish();
}
