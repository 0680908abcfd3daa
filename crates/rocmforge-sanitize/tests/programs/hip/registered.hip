// Host memory of the program's own, registered and reached by kernels.
#include "check.h"

#include <cstdlib>

__global__ void add_one(int* p, int n) {
  int i = place();
  if (i < n) p[i] += 1;
}

int main() {
  const int n = 3000;
  int* host = (int*)aligned_alloc(4096, 12288);
  for (int i = 0; i < n; i++) host[i] = 3 * i;
  OK(hipHostRegister(host, n * sizeof(int), hipHostRegisterMapped));
  ANSWERS(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(host, n * sizeof(int), hipHostRegisterMapped));
  int* device;
  OK(hipHostGetDevicePointer((void**)&device, host, 0));
  add_one<<<(n + 127) / 128, 128>>>(device, n);
  OK(hipDeviceSynchronize());
  for (int i = 0; i < n; i++) EQUAL(host[i], 3 * i + 1);
  OK(hipHostUnregister(host));
  ANSWERS(hipErrorHostMemoryNotRegistered, hipHostUnregister(host));
  ANSWERS(hipErrorInvalidValue, hipHostRegister(nullptr, 64, 0));
  ANSWERS(hipErrorInvalidValue, hipHostRegister(host, 0, 0));
  free(host);
  return finish();
}
