// Kernels for another processor only: the program starts, the launch says that there is no code for this device.
#include "check.h"

__global__ void kernel() {}

int main() {
  int count = 0;
  OK(hipGetDeviceCount(&count));
  void* p;
  OK(hipMalloc(&p, 16));
  kernel<<<1, 32>>>();
  ANSWERS(hipErrorNoBinaryForGpu, hipGetLastError());
  OK(hipDeviceSynchronize());
  OK(hipFree(p));
  return finish();
}
