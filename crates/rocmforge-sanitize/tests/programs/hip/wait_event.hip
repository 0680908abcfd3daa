// A stream waits for an event of another one: a chain over three streams.
#include "check.h"

__global__ void next(const int* from, int* to, int n) {
  int i = place();
  if (i < n) to[i] = from[i] * 3 + 1;
}

int main() {
  const int n = 700;
  int* p[4];
  hipStream_t streams[3];
  hipEvent_t done[3];
  for (auto& q : p) OK(hipMalloc(&q, n * sizeof(int)));
  for (auto& stream : streams) OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  for (auto& event : done) OK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; i++) in[i] = i;
  for (int round = 0; round < 3; round++) {
    if (round > 0) OK(hipStreamWaitEvent(streams[0], done[2], 0));
    OK(hipMemcpyAsync(p[0], in.data(), n * sizeof(int), hipMemcpyHostToDevice, streams[0]));
    for (int s = 0; s < 3; s++) {
      if (s > 0) OK(hipStreamWaitEvent(streams[s], done[s - 1], 0));
      next<<<(n + 63) / 64, 64, 0, streams[s]>>>(p[s], p[s + 1], n);
      OK(hipEventRecord(done[s], streams[s]));
    }
  }
  OK(hipEventSynchronize(done[2]));
  OK(hipMemcpy(out.data(), p[3], n * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EQUAL(out[i], 27 * i + 13);
  for (auto stream : streams) OK(hipStreamDestroy(stream));
  for (auto event : done) OK(hipEventDestroy(event));
  for (auto q : p) OK(hipFree(q));
  return finish();
}
