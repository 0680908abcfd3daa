// Signal handlers that call HIP, end the process or fork: refused or let through where their thread is in a HIP call, served elsewhere.
// The own malloc of the program raises the signal in the middle of each allocation of a HIP call: a handler that allocates there would wait for
// ever.
#include "check.h"

#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

extern "C" void* __libc_malloc(size_t);
extern "C" void* __libc_realloc(void*, size_t);

// Of the main thread: those of the library allocate as they start, when they are in no call yet.
static thread_local volatile bool armed, allocating;
static volatile int handled, refused, served;

static void interrupt() {
  if (!armed) return;
  if (allocating) {
    static const char text[] = "a handler allocates in the middle of an allocation\n";
    if (write(1, text, sizeof text - 1) < 0) _exit(8);
    _exit(9);
  }
  allocating = true;
  raise(SIGUSR1);
  allocating = false;
}

extern "C" void* malloc(size_t size) {
  interrupt();
  return __libc_malloc(size);
}

extern "C" void* realloc(void* memory, size_t size) {
  interrupt();
  return __libc_realloc(memory, size);
}

static void calls(int) {
  void* memory = nullptr;
  const hipError_t statuses[] = {hipMalloc(&memory, 16), hipMemset(memory, 0, 16), hipDeviceSynchronize(), hipFree(memory)};
  for (hipError_t one : statuses) one == hipErrorNotSupported ? refused = refused + 1 : served = served + 1;
  handled = handled + 1;
}

static void forks(int) {
  const pid_t child = fork();
  if (child == 0) _exit(5);
  int how = 0;
  if (waitpid(child, &how, 0) == child && WEXITSTATUS(how) == 5) handled = handled + 1;
}

static void exits(int) {
  armed = false;
  exit(3);
}

int main() {
  signal(SIGUSR1, calls);
  raise(SIGUSR1);
  EQUAL(served, 4);
  void* memory = nullptr;
  hipStream_t stream;
  OK(hipStreamCreate(&stream));
  armed = true;
  hipError_t answers[] = {
      hipMalloc(&memory, 1 << 20),
      hipMemsetAsync(memory, 1, 1 << 20, stream),
      hipStreamSynchronize(stream),
      hipFree(memory),
      // A finding, whose call stack is described and printed.
      hipFree(memory),  // host line
      hipDeviceSynchronize(),
  };
  armed = false;
  for (hipError_t one : {answers[0], answers[1], answers[2], answers[3], answers[5]}) EQUAL(one, hipSuccess);
  EQUAL(served, 4);
  EQUAL(refused, 4 * (handled - 1));
  TRUE(handled > 20);

  handled = 0;
  signal(SIGUSR1, forks);
  armed = true;
  answers[0] = hipMalloc(&memory, 1 << 20);
  armed = false;
  EQUAL(answers[0], hipSuccess);
  TRUE(handled > 1);

  const pid_t child = fork();
  if (child == 0) {
    signal(SIGUSR1, exits);
    armed = true;
    answers[0] = hipMalloc(&memory, 1 << 20);
    _exit(4);
  }
  int how = 0;
  EQUAL(waitpid(child, &how, 0), child);
  EQUAL(WIFEXITED(how) ? WEXITSTATUS(how) : -1, 3);
  OK(hipFree(memory));
  OK(hipStreamDestroy(stream));
  return finish();
}
