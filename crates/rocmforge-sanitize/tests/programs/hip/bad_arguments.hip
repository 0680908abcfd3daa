// Faulty: arguments that are null, freed, destroyed or no handles. Each call answers an error, and nothing crashes.
#include "check.h"

__global__ void kernel(int* p) { *p = 1; }

int main() {
  char host[64] = {}, *p;
  hipStream_t stream, gone, no_stream = (hipStream_t)0x1234567;
  hipEvent_t event, gone_event;
  OK(hipMalloc(&p, 64));
  OK(hipMemset(p, 0, 64));
  OK(hipStreamCreate(&stream));
  OK(hipStreamCreate(&gone));
  OK(hipEventCreate(&event));
  OK(hipEventCreate(&gone_event));
  OK(hipStreamDestroy(gone));
  OK(hipEventDestroy(gone_event));

  ANSWERS(hipErrorInvalidValue, hipMemcpy(nullptr, host, 4, hipMemcpyHostToDevice));
  ANSWERS(hipErrorInvalidValue, hipMemcpy(p, nullptr, 4, hipMemcpyHostToDevice));
  ANSWERS(hipErrorInvalidMemcpyDirection, hipMemcpy(p, host, 4, (hipMemcpyKind)77));
  ANSWERS(hipErrorInvalidValue, hipMemset(nullptr, 0, 4));
  for (hipStream_t bad : {gone, no_stream}) {
    TRUE(hipStreamSynchronize(bad) != hipSuccess);
    TRUE(hipStreamQuery(bad) != hipSuccess);
    TRUE(hipStreamDestroy(bad) != hipSuccess);
    TRUE(hipStreamWaitEvent(bad, event, 0) != hipSuccess);
    TRUE(hipEventRecord(event, bad) != hipSuccess);
    TRUE(hipMemcpyAsync(p, host, 4, hipMemcpyHostToDevice, bad) != hipSuccess);
    TRUE(hipMemsetAsync(p, 0, 4, bad) != hipSuccess);
    kernel<<<1, 1, 0, bad>>>((int*)p);
    TRUE(hipGetLastError() != hipSuccess);
  }
  ANSWERS(hipErrorInvalidHandle, hipStreamDestroy(nullptr));
  TRUE(hipEventRecord(gone_event, stream) != hipSuccess);
  TRUE(hipEventSynchronize(gone_event) != hipSuccess);
  TRUE(hipEventQuery(gone_event) != hipSuccess);
  TRUE(hipEventDestroy(gone_event) != hipSuccess);
  TRUE(hipEventDestroy(nullptr) != hipSuccess);
  TRUE(hipStreamWaitEvent(stream, gone_event, 0) != hipSuccess);
  TRUE(hipStreamWaitEvent(stream, nullptr, 0) != hipSuccess);
  TRUE(hipModuleUnload((hipModule_t)0x77) != hipSuccess);
  TRUE(hipModuleUnload(nullptr) != hipSuccess);
  hipFunction_t function;
  TRUE(hipModuleGetFunction(&function, nullptr, "kernel") != hipSuccess);
  TRUE(hipModuleLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) != hipSuccess);
  TRUE(hipModuleLoadData(nullptr, host) != hipSuccess);
  hipModule_t module;
  TRUE(hipModuleLoadData(&module, nullptr) != hipSuccess);
  TRUE(hipLaunchKernel(nullptr, dim3(1), dim3(1), nullptr, 0, nullptr) != hipSuccess);
  TRUE(hipLaunchKernel(host, dim3(1), dim3(1), nullptr, 0, nullptr) != hipSuccess);
  TRUE(hipGraphLaunch(nullptr, stream) != hipSuccess);
  TRUE(hipGraphDestroy(nullptr) != hipSuccess);
  TRUE(hipHostFree(host) != hipSuccess);
  TRUE(hipFreeAsync(nullptr, stream) != hipSuccess);
  TRUE(hipGetDeviceCount(nullptr) != hipSuccess);

  // All that was right before still is.
  kernel<<<1, 1, 0, stream>>>((int*)p);
  int got = 0;
  OK(hipStreamSynchronize(stream));
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  EQUAL(got, 1);
  OK(hipEventRecord(event, stream));
  OK(hipEventSynchronize(event));
  OK(hipEventDestroy(event));
  OK(hipStreamDestroy(stream));
  OK(hipFree(p));
  return finish();
}
