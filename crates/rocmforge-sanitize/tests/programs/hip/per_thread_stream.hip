// Compiled with -fgpu-default-stream=per-thread: the default stream of each host thread is one of its own.
#include "check.h"

#include <thread>

__global__ void fill(int* p, int n, int value) {
  int i = place();
  if (i < n) p[i] = value + i;
}

static void body(int value, int* good) {
  const int n = 2000;
  int* p;
  std::vector<int> out(n);
  hipError_t error = hipMalloc(&p, n * sizeof(int));
  for (int round = 0; round < 3 && !error; round++) {
    error = hipMemsetAsync(p, 0xff, n * sizeof(int), nullptr);
    fill<<<(n + 255) / 256, 256>>>(p, n, value + round);
    if (!error) error = hipGetLastError();
    if (!error) error = hipMemcpyAsync(out.data(), p, n * sizeof(int), hipMemcpyDeviceToHost, nullptr);
    if (!error) error = hipStreamSynchronize(nullptr);
    for (int i = 0; i < n; i++) *good += out[i] == value + round + i;
  }
  if (!error) error = hipStreamQuery(hipStreamPerThread);
  if (!error) error = hipFree(p);
  if (error) *good = -1;
}

int main() {
  int good[4] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(body, 1000 * i, &good[i]);
  for (auto& thread : threads) thread.join();
  for (int count : good) EQUAL(count, 6000);
  return finish();
}
