// A fork after the first HIP call: the parent goes on as before; the child's calls answer, whatever they answer, and end.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

__global__ void fill(int* p, int value) { p[threadIdx.x] = value + threadIdx.x; }

static void filled(int* p, int value) {
  fill<<<1, 64>>>(p, value);
  std::vector<int> out(64);
  OK(hipMemcpy(out.data(), p, 256, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) EQUAL(out[i], value + i);
}

int main() {
  int* p;
  OK(hipMalloc(&p, 256));
  filled(p, 5);
  // Still queued while the process forks.
  fill<<<1, 64>>>(p, 1000);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    int* own = nullptr;
    int count = 0;
    hipError_t counted = hipGetDeviceCount(&count);
    hipError_t allocated = hipMalloc(&own, 256);
    fill<<<1, 64>>>(own, 7);
    hipError_t waited = hipDeviceSynchronize();
    printf("child: %s, %s, %s\n", hipGetErrorName(counted), hipGetErrorName(allocated), hipGetErrorName(waited));
    return finish();
  }
  int state = -1;
  TRUE(waitpid(pid, &state, 0) == pid);
  EQUAL(state, 0);
  std::vector<int> out(64);
  OK(hipMemcpy(out.data(), p, 256, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; i++) EQUAL(out[i], 1000 + i);
  filled(p, 9);
  OK(hipFree(p));
  return finish();
}
