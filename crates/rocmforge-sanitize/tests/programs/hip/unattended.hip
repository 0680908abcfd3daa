// A program waits for what it has queued without calling HIP: for host functions, which run on a thread of their own and may wait for
// the program, and for a value that a kernel writes to pinned memory.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

__global__ void set(int* p, int value) { *(volatile int*)p = value; }

struct Shared {
  std::atomic<int> called{0}, go_on{0};
  std::thread::id thread;
};

static void note(hipStream_t, hipError_t, void* data) {
  auto shared = (Shared*)data;
  shared->thread = std::this_thread::get_id();
  shared->called++;
}

static void wait_for_program(hipStream_t, hipError_t, void* data) {
  auto shared = (Shared*)data;
  shared->called++;
  while (!shared->go_on) std::this_thread::yield();
}

// Whether it comes in a minute.
template <class F>
static bool comes(F condition) {
  auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return condition();
}

int main() {
  int* pinned;
  OK(hipHostMalloc((void**)&pinned, 2 * sizeof(int), 0));
  pinned[0] = pinned[1] = 0;
  hipStream_t stream;
  OK(hipStreamCreate(&stream));

  // A host function, and the kernel before it.
  Shared shared;
  set<<<1, 1, 0, stream>>>(pinned, 7);
  OK(hipStreamAddCallback(stream, note, &shared, 0));
  TRUE(comes([&] { return shared.called == 1; }));
  EQUAL(pinned[0], 7);
  TRUE(shared.thread != std::this_thread::get_id());

  // One that waits for the thread that queries its stream.
  OK(hipStreamAddCallback(stream, wait_for_program, &shared, 0));
  ANSWERS(hipErrorNotReady, hipStreamQuery(stream));
  TRUE(comes([&] { return shared.called == 2; }));
  ANSWERS(hipErrorNotReady, hipStreamQuery(stream));
  shared.go_on = 1;
  OK(hipStreamSynchronize(stream));

  // A kernel alone.
  set<<<1, 1, 0, stream>>>(pinned + 1, 9);
  TRUE(comes([&] { return ((std::atomic<int>*)pinned)[1] == 9; }));

  // A child while a host function runs, whose thread the child does not have.
  shared.go_on = 0;
  OK(hipStreamAddCallback(stream, wait_for_program, &shared, 0));
  ANSWERS(hipErrorNotReady, hipStreamQuery(stream));
  TRUE(comes([&] { return shared.called == 3; }));
  pid_t child = fork();
  if (child == 0) {
    OK(hipStreamSynchronize(stream));
    OK(hipStreamAddCallback(stream, note, &shared, 0));
    TRUE(comes([&] { return shared.called == 4; }));
    return finish();
  }
  int ended = -1;
  EQUAL(waitpid(child, &ended, 0), child);
  EQUAL(ended, 0);
  shared.go_on = 1;
  OK(hipStreamSynchronize(stream));

  OK(hipStreamDestroy(stream));
  OK(hipHostFree(pinned));
  return finish();
}
