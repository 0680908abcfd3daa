// Streams: order within one, flags, priorities, questions.
#include "check.h"

__global__ void append(int* p, int value) { *p = *p * 10 + value; }

int main() {
  int least = -7, greatest = 7;
  OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
  TRUE(greatest <= least);
  hipStream_t plain, free_running, urgent;
  OK(hipStreamCreate(&plain));
  OK(hipStreamCreateWithFlags(&free_running, hipStreamNonBlocking));
  OK(hipStreamCreateWithPriority(&urgent, hipStreamNonBlocking, greatest));
  unsigned flags = 9;
  OK(hipStreamGetFlags(plain, &flags));
  EQUAL(flags, (unsigned)hipStreamDefault);
  OK(hipStreamGetFlags(free_running, &flags));
  EQUAL(flags, (unsigned)hipStreamNonBlocking);
  EQUAL(hipStreamGetFlags(nullptr, &flags), hipErrorInvalidValue);
  EQUAL(hipStreamGetFlags(plain, nullptr), hipErrorInvalidValue);
  int priority = 99;
  OK(hipStreamGetPriority(urgent, &priority));
  EQUAL(priority, greatest);
  OK(hipStreamGetPriority(plain, &priority));
  EQUAL(priority, 0);
  int* p;
  OK(hipMalloc(&p, 3 * sizeof(int)));
  OK(hipMemset(p, 0, 3 * sizeof(int)));
  OK(hipDeviceSynchronize());
  hipStream_t all[3] = {plain, free_running, urgent};
  for (int i = 1; i <= 5; i++)
    for (int s = 0; s < 3; s++) append<<<1, 1, 0, all[s]>>>(p + s, i);
  for (auto stream : all) {
    OK(hipStreamSynchronize(stream));
    OK(hipStreamQuery(stream));
  }
  int got[3];
  OK(hipMemcpy(got, p, sizeof got, hipMemcpyDeviceToHost));
  for (int value : got) EQUAL(value, 12345);
  ANSWERS(hipErrorInvalidValue, hipStreamCreate(nullptr));
  ANSWERS(hipErrorInvalidValue, hipStreamCreateWithFlags(&plain, 0x77));
  for (auto stream : all) OK(hipStreamDestroy(stream));
  OK(hipFree(p));
  return finish();
}
