// Host functions in streams run in the order of the stream, on what the kernels before have written.
#include "check.h"

#include <dlfcn.h>

__global__ void set(int* p, int value) { *p = value; }

struct Seen {
  int* pinned;
  std::vector<int> values;
  hipStream_t stream = nullptr;
};

static void callback(hipStream_t stream, hipError_t error, void* data) {
  auto seen = (Seen*)data;
  OK(error);
  seen->stream = stream;
  seen->values.push_back(*seen->pinned);
}
static void host_function(void* data) {
  auto seen = (Seen*)data;
  seen->values.push_back(1000 + *seen->pinned);
}

int main() {
  // Newer than the header.
  auto hipLaunchHostFunc = (hipError_t(*)(hipStream_t, void (*)(void*), void*))dlsym(RTLD_DEFAULT, "hipLaunchHostFunc");
  if (!TRUE(hipLaunchHostFunc != nullptr)) return finish();
  Seen seen;
  OK(hipHostMalloc((void**)&seen.pinned, sizeof(int), 0));
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  for (int i = 1; i <= 3; i++) {
    set<<<1, 1, 0, stream>>>(seen.pinned, i);
    OK(hipStreamAddCallback(stream, callback, &seen, 0));
    OK(hipLaunchHostFunc(stream, host_function, &seen));
  }
  OK(hipStreamSynchronize(stream));
  EQUAL(seen.values.size(), 6u);
  for (int i = 1; i <= 3 && seen.values.size() == 6; i++) {
    EQUAL(seen.values[2 * i - 2], i);
    EQUAL(seen.values[2 * i - 1], 1000 + i);
  }
  EQUAL(seen.stream, stream);
  ANSWERS(hipErrorInvalidValue, hipStreamAddCallback(stream, nullptr, nullptr, 0));
  ANSWERS(hipErrorInvalidValue, hipStreamAddCallback(stream, callback, nullptr, 1));
  OK(hipStreamDestroy(stream));
  OK(hipHostFree(seen.pinned));
  return finish();
}
