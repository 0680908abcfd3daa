// Properties of the device: each field that programs divide by or decide by has a real number.
#include "check.h"

#include <string>

int main(int, char** argv) {
  int count = 0;
  OK(hipGetDeviceCount(&count));
  EQUAL(count, 1);
  hipDeviceProp_t p;
  memset(&p, 0x5a, sizeof p);
  OK(hipGetDeviceProperties(&p, 0));
  TRUE(strlen(p.name) > 0);
  std::string arch = p.gcnArchName;
  TRUE(arch == "gfx1100" || arch == "gfx1201");
  EQUAL(p.warpSize, 32);
  EQUAL(p.maxThreadsPerBlock, 1024);
  EQUAL(p.maxThreadsDim[0], 1024);
  EQUAL(p.maxThreadsDim[1], 1024);
  EQUAL(p.maxThreadsDim[2], 1024);
  EQUAL(p.sharedMemPerBlock, 65536u);
  EQUAL(p.major, arch == "gfx1100" ? 11 : 12);
  EQUAL(p.minor, 0);
  TRUE(p.totalGlobalMem >= (size_t)1 << 30);
  TRUE(p.multiProcessorCount > 0);
  TRUE(p.maxThreadsPerMultiProcessor >= 1024);
  TRUE(p.clockRate > 100000);
  TRUE(p.memoryClockRate > 100000);
  TRUE(p.memoryBusWidth >= 64);
  TRUE(p.l2CacheSize > 0);
  TRUE(p.maxGridSize[0] > 65535);
  EQUAL(p.integrated, 0);
  EQUAL(p.canMapHostMemory, 1);
  char name[256] = {};
  OK(hipDeviceGetName(name, sizeof name, 0));
  TRUE(strcmp(name, p.name) == 0);
  size_t total = 0;
  OK(hipDeviceTotalMem(&total, 0));
  EQUAL(total, p.totalGlobalMem);
  int major = -1, minor = -1;
  OK(hipDeviceComputeCapability(&major, &minor, 0));
  EQUAL(major, p.major);
  EQUAL(minor, p.minor);
  ANSWERS(hipErrorInvalidDevice, hipGetDeviceProperties(&p, 1));
  ANSWERS(hipErrorInvalidDevice, hipGetDeviceProperties(&p, -1));
  ANSWERS(hipErrorInvalidValue, hipGetDeviceProperties(nullptr, 0));
  return finish();
}
