// Kernels that are templates, one of them called through a pointer to it.
#include "check.h"

template <class T, int N>
__global__ void powers(T* out, T base) {
  T value = 1;
  for (int i = 0; i < N; i++) {
    out[i] = value;
    value *= base;
  }
}

template <class F>
__global__ void map(int* p, int n, F f) {
  int i = place();
  if (i < n) p[i] = f(p[i], i);
}

struct Weighted {
  int weight;
  __device__ int operator()(int value, int i) const { return value + weight * i; }
};

template <class T, int N>
static void check(T base) {
  T* p;
  OK(hipMalloc(&p, N * sizeof(T)));
  void (*kernel)(T*, T) = powers<T, N>;
  kernel<<<1, 1>>>(p, base);
  T out[N], value = 1;
  OK(hipMemcpy(out, p, sizeof out, hipMemcpyDeviceToHost));
  for (int i = 0; i < N; i++, value *= base) EQUAL(out[i], value);
  OK(hipFree(p));
}

int main() {
  check<int, 5>(3);
  check<long long, 12>(-7);
  check<float, 9>(0.5f);
  check<double, 4>(1.25);
  check<unsigned char, 6>(3);
  const int n = 100;
  int* p;
  OK(hipMalloc(&p, n * 4));
  OK(hipMemset(p, 0, n * 4));
  map<<<1, 128>>>(p, n, Weighted{3});
  int more = 9;
  map<<<1, 128>>>(p, n, [more] __device__(int value, int) { return value * 2 + more; });
  std::vector<int> out(n);
  OK(hipMemcpy(out.data(), p, n * 4, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EQUAL(out[i], 6 * i + 9);
  OK(hipFree(p));
  return finish();
}
