// Children of a process that has not called HIP: each has a device of its own.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void square(int* p) { p[threadIdx.x] = threadIdx.x * threadIdx.x; }

static int child() {
  int* p;
  std::vector<int> out(64);
  OK(hipMalloc(&p, 256));
  square<<<1, 64>>>(p);
  OK(hipMemcpy(out.data(), p, 256, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) EQUAL(out[i], i * i);
  OK(hipFree(p));
  return finish();
}

int main() {
  pid_t children[3];
  for (auto& pid : children) {
    pid = fork();
    if (pid == 0) return child();
    TRUE(pid > 0);
  }
  for (auto pid : children) {
    int state = -1;
    TRUE(waitpid(pid, &state, 0) == pid);
    EQUAL(state, 0);
  }
  return finish() | child();
}
