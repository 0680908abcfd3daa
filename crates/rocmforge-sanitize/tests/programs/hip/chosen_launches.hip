// Faulty: launches one after another read what nobody has written, for the options that choose among launches and findings.
#include "check.h"

template <int N>
__global__ void take(const int* from, int* to) {
  to[threadIdx.x] = from[threadIdx.x] + N;  // kernel line
}

__global__ void fill(int* p) { p[threadIdx.x] = 7; }

int main() {
  const size_t size = 32 * sizeof(int);
  int *unwritten, *filled, *sums;
  OK(hipMalloc(&unwritten, size));
  OK(hipMalloc(&filled, size));
  OK(hipMalloc(&sums, size));
  fill<<<1, 32>>>(filled);
  take<1><<<1, 32>>>(unwritten, sums);
  take<2><<<1, 32>>>(unwritten, sums);
  take<3><<<1, 32>>>(unwritten, sums);
  // Right, whichever launches are checked.
  take<4><<<1, 32>>>(filled, sums);
  std::vector<int> out(32);
  OK(hipMemcpy(out.data(), sums, size, hipMemcpyDeviceToHost));
  for (int value : out) EQUAL(value, 11);
  // Two launches of a graph are two launches of its kernel.
  hipStream_t stream;
  OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  OK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
  take<5><<<1, 32, 0, stream>>>(unwritten, sums);
  hipGraph_t graph;
  OK(hipStreamEndCapture(stream, &graph));
  hipGraphExec_t exec;
  OK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 2; i++) OK(hipGraphLaunch(exec, stream));
  OK(hipStreamSynchronize(stream));
  OK(hipGraphExecDestroy(exec));
  OK(hipGraphDestroy(graph));
  OK(hipStreamDestroy(stream));
  for (int* p : {unwritten, filled, sums}) OK(hipFree(p));
  return finish();
}
