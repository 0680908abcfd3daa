// Faulty: memory is freed twice, from its middle, and memory that HIP did not allocate.
#include "check.h"

int main() {
  int *p, *q, own = 0;
  OK(hipMalloc(&p, 256));
  OK(hipMalloc(&q, 256));
  OK(hipFree(p));
  ANSWERS(hipErrorInvalidValue, hipFree(p));  // host line
  ANSWERS(hipErrorInvalidValue, hipFree(&own));
  OK(hipFree(q));
  return finish();
}
