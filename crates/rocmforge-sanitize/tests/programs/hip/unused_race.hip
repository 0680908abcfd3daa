// One element past the wave's part is read from LDS, where the next wave writes, and thrown away.
#include "check.h"

__global__ void sum(int* out, int more) {
  __shared__ int s[65];
  int t = threadIdx.x, first = t / 32 * 32;
  s[t] = t;
  __builtin_amdgcn_wave_barrier();
  int sum = 0, next = s[first];
  for (int i = 1; i <= 32; i++) {
    sum += next;
    next = s[first + i];
  }
  if (t % 32 == 0) out[t / 32] = sum + (more ? next : 0);
}

int main() {
  int *out, host[2];
  OK(hipMalloc(&out, sizeof host));
  sum<<<1, 64>>>(out, 0);
  OK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
  EQUAL(host[0], 496);
  EQUAL(host[1], 1520);
  return finish();
}
