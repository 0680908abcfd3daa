// What a pointer points to.
#include "check.h"

int main() {
  char *device, *pinned;
  OK(hipMalloc(&device, 1000));
  OK(hipHostMalloc((void**)&pinned, 1000, 0));
  hipPointerAttribute_t a;
  memset(&a, 0, sizeof a);
  OK(hipPointerGetAttributes(&a, device + 10));
  EQUAL(a.memoryType, hipMemoryTypeDevice);
  EQUAL(a.device, 0);
  EQUAL(a.devicePointer, (void*)(device + 10));
  EQUAL(a.isManaged, 0u);
  OK(hipPointerGetAttributes(&a, pinned));
  EQUAL(a.memoryType, hipMemoryTypeHost);
  EQUAL(a.hostPointer, (void*)pinned);
  int own = 0;
  ANSWERS(hipErrorInvalidValue, hipPointerGetAttributes(&a, &own));
  ANSWERS(hipErrorInvalidValue, hipPointerGetAttributes(nullptr, device));
  void* start = nullptr;
  size_t size = 0;
  OK(hipPointerGetAttribute(&start, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 10));
  OK(hipPointerGetAttribute(&size, HIP_POINTER_ATTRIBUTE_RANGE_SIZE, device + 10));
  EQUAL(start, (void*)device);
  EQUAL(size, 1000u);
  OK(hipFree(device));
  OK(hipHostFree(pinned));
  return finish();
}
