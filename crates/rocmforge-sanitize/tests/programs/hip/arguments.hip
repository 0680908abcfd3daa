// Arguments of kernels: all sizes, structures by value, many of them.
#include "check.h"

struct Small {
  char c;
  short s;
};
struct Large {
  double d[20];
  int i;
};

__global__ void sum(double* out, bool b, char c, short s, int i, long long l, float f, double d, Small small, Large large, int* p, char last) {
  double value = b + c + s + i + (double)l + f + d + small.c + small.s + large.i + *p + last;
  for (double part : large.d) value += part;
  *out = value;
}

int main() {
  double *out, got = 0, expected = 0;
  int *p, five = 5;
  OK(hipMalloc(&out, 8));
  OK(hipMalloc(&p, 4));
  OK(hipMemcpy(p, &five, 4, hipMemcpyHostToDevice));
  Large large;
  for (int i = 0; i < 20; i++) large.d[i] = i * 0.25, expected += i * 0.25;
  large.i = 1000;
  sum<<<1, 1>>>(out, true, -3, 300, -70000, 1ll << 40, 0.5f, 0.125, Small{7, -8}, large, p, 64);
  OK(hipMemcpy(&got, out, 8, hipMemcpyDeviceToHost));
  EQUAL(got, expected + 1 - 3 + 300 - 70000 + (double)(1ll << 40) + 0.5 + 0.125 + 7 - 8 + 1000 + 5 + 64);
  OK(hipFree(out));
  OK(hipFree(p));
  return finish();
}
