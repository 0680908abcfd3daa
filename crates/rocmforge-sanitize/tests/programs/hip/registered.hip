// Host memory of the program's own, registered and reached by kernels.
#include "check.h"

#include <sys/mman.h>

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

  // Pages that the process does not have.
  char* pages = (char*)mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EQUAL(munmap(pages + 4096, 4096), 0);
  ANSWERS(hipErrorInvalidValue, hipHostRegister(pages, 4097, 0));
  ANSWERS(hipErrorInvalidValue, hipHostRegister(pages + 4096, 1, 0));
  ANSWERS(hipErrorInvalidValue, hipHostRegister(pages, SIZE_MAX - 4096, 0));
  OK(hipHostRegister(pages + 4095, 1, 0));
  OK(hipHostUnregister(pages + 4095));
  free(host);
  return finish();
}
