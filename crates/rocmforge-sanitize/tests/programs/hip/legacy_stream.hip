// The legacy default stream waits for blocking streams, and they wait for it: no events are needed.
#include "check.h"

__global__ void step(int* p, int n, int factor, int more) {
  int i = place();
  if (i < n) p[i] = p[i] * factor + more;
}

int main() {
  const int n = 256;
  int* p;
  OK(hipMalloc(&p, n * sizeof(int)));
  OK(hipMemset(p, 0, n * sizeof(int)));
  hipStream_t one, two;
  OK(hipStreamCreate(&one));
  OK(hipStreamCreate(&two));
  step<<<1, n>>>(p, n, 1, 1);
  step<<<1, n, 0, one>>>(p, n, 10, 2);
  step<<<1, n>>>(p, n, 10, 3);
  step<<<1, n, 0, two>>>(p, n, 10, 4);
  step<<<1, n>>>(p, n, 10, 5);
  std::vector<int> out(n);
  OK(hipMemcpy(out.data(), p, n * sizeof(int), hipMemcpyDeviceToHost));
  for (int value : out) EQUAL(value, 12345);
  OK(hipStreamDestroy(one));
  OK(hipStreamDestroy(two));
  OK(hipFree(p));
  return finish();
}
