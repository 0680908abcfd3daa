// Events: recorded, asked, waited for; the time between two is that of the work between them.
#include "check.h"

__global__ void work(int* p, int rounds) {
  for (int i = 0; i < rounds; i++) atomicAdd(p, i & 1);
}

int main() {
  int* p;
  OK(hipMalloc(&p, 4));
  OK(hipMemset(p, 0, 4));
  hipEvent_t begin, end, no_time;
  OK(hipEventCreate(&begin));
  OK(hipEventCreate(&end));
  OK(hipEventCreateWithFlags(&no_time, hipEventDisableTiming));
  OK(hipEventQuery(begin));
  float ms = -1;
  ANSWERS(hipErrorInvalidHandle, hipEventElapsedTime(&ms, begin, end));
  OK(hipEventRecord(begin, nullptr));
  work<<<4, 64>>>(p, 100);
  OK(hipEventRecord(end, nullptr));
  OK(hipEventSynchronize(end));
  OK(hipEventQuery(end));
  OK(hipEventElapsedTime(&ms, begin, end));
  TRUE(ms > 0 && ms < 10000);
  int got = 0;
  OK(hipMemcpy(&got, p, 4, hipMemcpyDeviceToHost));
  EQUAL(got, 4 * 64 * 50);
  OK(hipEventRecord(no_time, nullptr));
  OK(hipEventSynchronize(no_time));
  ANSWERS(hipErrorInvalidHandle, hipEventElapsedTime(&ms, begin, no_time));
  ANSWERS(hipErrorInvalidValue, hipEventElapsedTime(nullptr, begin, end));
  ANSWERS(hipErrorInvalidValue, hipEventCreate(nullptr));
  ANSWERS(hipErrorInvalidHandle, hipEventRecord(nullptr, nullptr));
  OK(hipEventDestroy(begin));
  OK(hipEventDestroy(end));
  OK(hipEventDestroy(no_time));
  OK(hipFree(p));
  return finish();
}
