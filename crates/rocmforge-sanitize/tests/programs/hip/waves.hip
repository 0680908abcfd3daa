// Operations of a wave: values of other lanes, votes.
#include "check.h"

__global__ void lanes(int* out, unsigned long long* votes) {
  int lane = threadIdx.x % 32;
  int* own = out + 6 * place();
  own[0] = __shfl(lane * 10, (lane + 5) % 32);
  own[1] = __shfl_up(lane, 3);
  own[2] = __shfl_down(lane, 3);
  own[3] = __shfl_xor(lane, 16);
  int sum = lane;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor(sum, step);
  own[4] = sum;
  own[5] = __any(lane == 31) * 2 + __all(lane < 31);
  unsigned long long vote = __ballot(lane % 3 == 0);
  if (lane == 0) votes[place() / 32] = vote;
}

int main() {
  const int n = 64;
  int* p;
  unsigned long long *v, votes[2], expected = 0;
  OK(hipMalloc(&p, 6 * n * 4));
  OK(hipMalloc(&v, sizeof votes));
  lanes<<<1, n>>>(p, v);
  std::vector<int> out(6 * n);
  OK(hipMemcpy(out.data(), p, 6 * n * 4, hipMemcpyDeviceToHost));
  OK(hipMemcpy(votes, v, sizeof votes, hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) {
    int lane = i % 32;
    EQUAL(out[6 * i], (lane + 5) % 32 * 10);
    EQUAL(out[6 * i + 1], lane < 3 ? lane : lane - 3);
    EQUAL(out[6 * i + 2], lane > 28 ? lane : lane + 3);
    EQUAL(out[6 * i + 3], lane ^ 16);
    EQUAL(out[6 * i + 4], 496);
    EQUAL(out[6 * i + 5], 2);
  }
  for (int lane = 0; lane < 32; lane += 3) expected |= 1ull << lane;
  EQUAL(votes[0], expected);
  EQUAL(votes[1], expected);
  OK(hipFree(p));
  OK(hipFree(v));
  return finish();
}
