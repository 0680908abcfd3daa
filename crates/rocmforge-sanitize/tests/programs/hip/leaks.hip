// Faulty: device memory, pinned memory, a stream and an event are not given back.
#include "check.h"

int main() {
  void *p, *q, *freed;
  hipStream_t stream;
  hipEvent_t event;
  OK(hipMalloc(&p, 12345));  // host line
  OK(hipMalloc(&freed, 777));
  OK(hipHostMalloc(&q, 512, 0));
  OK(hipStreamCreate(&stream));
  OK(hipEventCreate(&event));
  OK(hipFree(freed));
  return finish();
}
