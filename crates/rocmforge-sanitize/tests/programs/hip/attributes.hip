// Attributes: they say the same as the properties.
#include "check.h"

static int attribute(hipDeviceAttribute_t which) {
  int value = -1;
  OK(hipDeviceGetAttribute(&value, which, 0));
  return value;
}

int main() {
  hipDeviceProp_t p;
  OK(hipGetDeviceProperties(&p, 0));
  EQUAL(attribute(hipDeviceAttributeWarpSize), p.warpSize);
  EQUAL(attribute(hipDeviceAttributeMaxThreadsPerBlock), p.maxThreadsPerBlock);
  EQUAL(attribute(hipDeviceAttributeMaxBlockDimX), p.maxThreadsDim[0]);
  EQUAL(attribute(hipDeviceAttributeMaxBlockDimY), p.maxThreadsDim[1]);
  EQUAL(attribute(hipDeviceAttributeMaxBlockDimZ), p.maxThreadsDim[2]);
  EQUAL(attribute(hipDeviceAttributeMaxGridDimX), p.maxGridSize[0]);
  EQUAL(attribute(hipDeviceAttributeMaxGridDimY), p.maxGridSize[1]);
  EQUAL(attribute(hipDeviceAttributeMaxGridDimZ), p.maxGridSize[2]);
  EQUAL(attribute(hipDeviceAttributeMaxSharedMemoryPerBlock), (int)p.sharedMemPerBlock);
  EQUAL(attribute(hipDeviceAttributeMaxRegistersPerBlock), p.regsPerBlock);
  EQUAL(attribute(hipDeviceAttributeClockRate), p.clockRate);
  EQUAL(attribute(hipDeviceAttributeMemoryClockRate), p.memoryClockRate);
  EQUAL(attribute(hipDeviceAttributeMemoryBusWidth), p.memoryBusWidth);
  EQUAL(attribute(hipDeviceAttributeMultiprocessorCount), p.multiProcessorCount);
  EQUAL(attribute(hipDeviceAttributeComputeCapabilityMajor), p.major);
  EQUAL(attribute(hipDeviceAttributeComputeCapabilityMinor), p.minor);
  EQUAL(attribute(hipDeviceAttributeL2CacheSize), p.l2CacheSize);
  EQUAL(attribute(hipDeviceAttributeMaxThreadsPerMultiProcessor), p.maxThreadsPerMultiProcessor);
  EQUAL(attribute(hipDeviceAttributeConcurrentKernels), p.concurrentKernels);
  EQUAL(attribute(hipDeviceAttributePciBusId), p.pciBusID);
  EQUAL(attribute(hipDeviceAttributePciDeviceId), p.pciDeviceID);
  EQUAL(attribute(hipDeviceAttributeIntegrated), p.integrated);
  EQUAL(attribute(hipDeviceAttributeCanMapHostMemory), p.canMapHostMemory);
  EQUAL(attribute(hipDeviceAttributeCooperativeLaunch), p.cooperativeLaunch);
  int value = 0;
  ANSWERS(hipErrorInvalidDevice, hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 7));
  ANSWERS(hipErrorInvalidValue, hipDeviceGetAttribute(nullptr, hipDeviceAttributeWarpSize, 0));
  ANSWERS(hipErrorInvalidValue, hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)123456, 0));
  return finish();
}
