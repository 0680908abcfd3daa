// What is queued in a capturing stream becomes a graph, which runs as often as it is launched.
#include "check.h"

__global__ void add(int* p, int n, int value) {
  int i = place();
  if (i < n) p[i] += value;
}

int main() {
  const int n = 100;
  int* p;
  OK(hipMalloc(&p, n * sizeof(int)));
  OK(hipMemset(p, 0, n * sizeof(int)));
  hipStream_t stream, other;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  hipEvent_t fork, join;
  OK(hipEventCreate(&fork));
  OK(hipEventCreate(&join));
  OK(hipDeviceSynchronize());
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  hipStreamCaptureStatus state;
  OK(hipStreamIsCapturing(stream, &state));
  EQUAL(state, hipStreamCaptureStatusActive);
  add<<<1, 128, 0, stream>>>(p, n, 1);
  OK(hipEventRecord(fork, stream));
  OK(hipStreamWaitEvent(other, fork, 0));
  add<<<1, 128, 0, other>>>(p, n, 10);
  OK(hipEventRecord(join, other));
  OK(hipStreamWaitEvent(stream, join, 0));
  add<<<1, 128, 0, stream>>>(p, n, 100);
  hipGraph_t graph = nullptr;
  OK(hipStreamEndCapture(stream, &graph));
  TRUE(graph != nullptr);
  OK(hipStreamIsCapturing(stream, &state));
  EQUAL(state, hipStreamCaptureStatusNone);
  std::vector<int> out(n);
  OK(hipMemcpy(out.data(), p, n * sizeof(int), hipMemcpyDeviceToHost));
  for (int value : out) EQUAL(value, 0);
  hipGraphExec_t exec;
  OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 3; i++) OK(hipGraphLaunch(exec, stream));
  OK(hipStreamSynchronize(stream));
  OK(hipMemcpy(out.data(), p, n * sizeof(int), hipMemcpyDeviceToHost));
  for (int value : out) EQUAL(value, 333);
  OK(hipGraphExecDestroy(exec));
  OK(hipGraphDestroy(graph));
  ANSWERS(hipErrorIllegalState, hipStreamEndCapture(stream, &graph));
  OK(hipEventDestroy(fork));
  OK(hipEventDestroy(join));
  OK(hipStreamDestroy(stream));
  OK(hipStreamDestroy(other));
  OK(hipFree(p));
  return finish();
}
