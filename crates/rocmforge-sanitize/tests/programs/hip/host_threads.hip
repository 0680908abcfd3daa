// Eight host threads with streams of their own, and an error of one that is not that of another.
#include "check.h"

#include <thread>

__global__ void mix(unsigned* p, int n, unsigned seed) {
  int i = place();
  if (i < n) p[i] = p[i] * 1664525u + seed;
}

static void body(unsigned seed, int* good) {
  const int n = 512;
  unsigned* p;
  hipStream_t stream;
  std::vector<unsigned> in(n), out(n);
  if (hipSetDevice(0) || hipStreamCreateWithFlags(&stream, hipStreamNonBlocking)) return;
  for (int round = 0; round < 5; round++) {
    if (hipMalloc(&p, n * 4)) return;
    for (int i = 0; i < n; i++) in[i] = seed + i;
    if (hipMemcpyAsync(p, in.data(), n * 4, hipMemcpyHostToDevice, stream)) return;
    for (int k = 0; k < 4; k++) mix<<<2, 256, 0, stream>>>(p, n, seed);
    if (hipMemcpyAsync(out.data(), p, n * 4, hipMemcpyDeviceToHost, stream) || hipStreamSynchronize(stream)) return;
    for (int i = 0; i < n; i++) {
      unsigned value = in[i];
      for (int k = 0; k < 4; k++) value = value * 1664525u + seed;
      *good += out[i] == value;
    }
    if (hipFree(p)) return;
  }
  if (hipStreamDestroy(stream)) return;
  if (seed % 2 == 0) {
    if (hipMalloc((void**)nullptr, 4) != hipErrorInvalidValue) *good = -2;
    if (hipPeekAtLastError() != hipErrorInvalidValue) *good = -3;
  } else if (hipPeekAtLastError() != hipSuccess) {
    *good = -4;
  }
}

int main() {
  int good[8] = {};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; i++) threads.emplace_back(body, 77 + i, &good[i]);
  for (auto& thread : threads) thread.join();
  for (int count : good) EQUAL(count, 2560);
  OK(hipPeekAtLastError());
  return finish();
}
