// A program waits for a callback without calling HIP, and ends without a word to the library. The callback does not come, because the
// kernel before it is out of bounds and stops the card. That has been said by then.
#include "check.h"

#include <unistd.h>

#include <atomic>

__global__ void write(int* p) { p[4096] = 1; }  // kernel line

static std::atomic<bool> called;
static void note(hipStream_t, hipError_t, void*) { called = true; }

int main() {
  int* data;
  OK(hipMalloc((void**)&data, 16));
  write<<<1, 1>>>(data);  // host line
  OK(hipStreamAddCallback(nullptr, note, nullptr, 0));
  for (int tenths = 0; tenths < 50 && !called; tenths++) usleep(100000);
  TRUE(!called);
  _exit(finish());
}
