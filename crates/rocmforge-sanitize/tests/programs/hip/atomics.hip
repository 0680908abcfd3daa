// Atomic operations of many threads on few places.
#include "check.h"

__global__ void all(int* ints, unsigned* words, unsigned long long* longs, float* floats) {
  int i = place();
  atomicAdd(&ints[0], i);
  atomicSub(&ints[1], 1);
  atomicMax(&ints[2], i);
  atomicMin(&ints[3], -i);
  atomicOr(&words[0], 1u << (i % 32));
  atomicAnd(&words[1], ~(1u << (i % 32)));
  atomicXor(&words[2], i);
  atomicAdd(&longs[0], 1ull << 33);
  atomicAdd(&floats[0], 0.5f);
  int old = atomicAdd(&ints[4], 0);
  for (;;) {
    int seen = atomicCAS(&ints[4], old, old + 2);
    if (seen == old) break;
    old = seen;
  }
  if (i == 77) atomicExch(&ints[5], 1234);
}

int main() {
  const int n = 512;
  int ints[8] = {}, *di;
  unsigned words[4] = {0, ~0u, 0, 0}, *dw, x = 0;
  unsigned long long longs[1] = {}, *dl;
  float floats[1] = {}, *df;
  for (int i = 0; i < n; i++) x ^= i;
  OK(hipMalloc(&di, sizeof ints));
  OK(hipMalloc(&dw, sizeof words));
  OK(hipMalloc(&dl, sizeof longs));
  OK(hipMalloc(&df, sizeof floats));
  OK(hipMemcpy(di, ints, sizeof ints, hipMemcpyHostToDevice));
  OK(hipMemcpy(dw, words, sizeof words, hipMemcpyHostToDevice));
  OK(hipMemcpy(dl, longs, sizeof longs, hipMemcpyHostToDevice));
  OK(hipMemcpy(df, floats, sizeof floats, hipMemcpyHostToDevice));
  all<<<n / 128, 128>>>(di, dw, dl, df);
  OK(hipMemcpy(ints, di, sizeof ints, hipMemcpyDeviceToHost));
  OK(hipMemcpy(words, dw, sizeof words, hipMemcpyDeviceToHost));
  OK(hipMemcpy(longs, dl, sizeof longs, hipMemcpyDeviceToHost));
  OK(hipMemcpy(floats, df, sizeof floats, hipMemcpyDeviceToHost));
  EQUAL(ints[0], n * (n - 1) / 2);
  EQUAL(ints[1], -n);
  EQUAL(ints[2], n - 1);
  EQUAL(ints[3], 1 - n);
  EQUAL(ints[4], 2 * n);
  EQUAL(ints[5], 1234);
  EQUAL(words[0], ~0u);
  EQUAL(words[1], 0u);
  EQUAL(words[2], x);
  EQUAL(longs[0], (unsigned long long)n << 33);
  EQUAL(floats[0], n * 0.5f);
  OK(hipFree(di));
  OK(hipFree(dw));
  OK(hipFree(dl));
  OK(hipFree(df));
  return finish();
}
