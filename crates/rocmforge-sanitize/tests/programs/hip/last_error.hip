// The last error: kept for a look, given once. In HIP 5 and 6 a success after it clears it too.
#include "check.h"

__global__ void nothing() {}

int main() {
  OK(hipGetLastError());
  int count = 0;
  ANSWERS(hipErrorInvalidDevice, hipSetDevice(99));
  ANSWERS(hipErrorInvalidDevice, hipPeekAtLastError());
  ANSWERS(hipErrorInvalidDevice, hipPeekAtLastError());
  ANSWERS(hipErrorInvalidDevice, hipGetLastError());
  OK(hipPeekAtLastError());
  OK(hipGetLastError());
  ANSWERS(hipErrorInvalidDevice, hipSetDevice(99));
  OK(hipGetDeviceCount(&count));
  OK(hipGetLastError());
  nothing<<<1, 2000>>>();
  ANSWERS(hipErrorInvalidValue, hipPeekAtLastError());
  ANSWERS(hipErrorInvalidValue, hipGetLastError());
  nothing<<<1, 32>>>();
  OK(hipGetLastError());
  OK(hipDeviceSynchronize());
  return finish();
}
