// The choice of a device, its address on the bus, versions, limits.
#include "check.h"

int main() {
  OK(hipInit(0));
  int device = -1;
  OK(hipGetDevice(&device));
  EQUAL(device, 0);
  OK(hipSetDevice(0));
  ANSWERS(hipErrorInvalidDevice, hipSetDevice(1));
  ANSWERS(hipErrorInvalidDevice, hipSetDevice(-1));
  hipDevice_t handle = -1;
  OK(hipDeviceGet(&handle, 0));
  EQUAL(handle, 0);
  ANSWERS(hipErrorInvalidDevice, hipDeviceGet(&handle, 3));
  char bus[32] = {};
  OK(hipDeviceGetPCIBusId(bus, sizeof bus, 0));
  TRUE(strlen(bus) >= 12);
  int same = -1;
  OK(hipDeviceGetByPCIBusId(&same, bus));
  EQUAL(same, 0);
  int driver = 0, runtime = 0;
  OK(hipDriverGetVersion(&driver));
  OK(hipRuntimeGetVersion(&runtime));
  TRUE(driver / 10000000 >= 5);
  EQUAL(driver, runtime);
  ANSWERS(hipErrorInvalidValue, hipDriverGetVersion(nullptr));
  size_t heap = 0;
  OK(hipDeviceGetLimit(&heap, hipLimitMallocHeapSize));
  TRUE(heap > 0);
  unsigned flags = 77;
  OK(hipGetDeviceFlags(&flags));
  OK(hipSetDeviceFlags(hipDeviceScheduleYield));
  hipDeviceProp_t wish;
  memset(&wish, 0, sizeof wish);
  int chosen = -1;
  OK(hipChooseDevice(&chosen, &wish));
  EQUAL(chosen, 0);
  OK(hipDeviceSynchronize());
  return finish();
}
