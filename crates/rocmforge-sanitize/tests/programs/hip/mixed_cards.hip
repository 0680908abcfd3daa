// Devices of different kinds: each launch runs the code for the device that is current.
#include "check.h"

__global__ void which(int* out) {
#if defined(__gfx1100__)
  *out = 1100;
#elif defined(__gfx1201__)
  *out = 1201;
#endif
}

__device__ int kept;
__global__ void keep(int value) { kept = value; }

int main() {
  const char* names[] = {"gfx1201", "gfx1100", "gfx1201"};
  const int numbers[] = {1201, 1100, 1201};
  int devices = 0;
  OK(hipGetDeviceCount(&devices));
  EQUAL(devices, 3);
  for (int device = 0; device < devices; device++) {
    OK(hipSetDevice(device));
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, device));
    TRUE(strcmp(properties.gcnArchName, names[device]) == 0);
    EQUAL(properties.totalGlobalMem, size_t(1) << 30);
    int *p, got = 0;
    OK(hipMalloc(&p, sizeof(int)));
    which<<<1, 1>>>(p);
    OK(hipMemcpy(&got, p, sizeof got, hipMemcpyDeviceToHost));
    EQUAL(got, numbers[device]);
    OK(hipFree(p));
    keep<<<1, 1>>>(10 + device);
    OK(hipDeviceSynchronize());
  }
  // A variable of device code is one for each device.
  for (int device = 0; device < devices; device++) {
    int got = 0;
    OK(hipSetDevice(device));
    OK(hipMemcpyFromSymbol(&got, HIP_SYMBOL(kept), sizeof got));
    EQUAL(got, 10 + device);
  }
  return finish();
}
