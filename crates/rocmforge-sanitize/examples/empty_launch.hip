// Host time of a launch: of the call alone, and with the kernel's simulated execution.
//
// clang++-19 -x hip --offload-arch=gfx1100 -nogpulib -D__AMDGCN_WAVEFRONT_SIZE=32 -Wno-macro-redefined -O1 empty_launch.hip -lamdhip64
// rocmforge-sanitize run --num-callers 0 -- ./a.out 20000
#include <hip/hip_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

__global__ void empty() {}

int main(int count, char** words) {
  const int launches = count > 1 ? atoi(words[1]) : 20000;
  // The first launch loads the code.
  for (int i = 0; i < 100; i++) empty<<<1, 32>>>();
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (int i = 0; i < launches; i++) empty<<<1, 32>>>();
  const auto called = Clock::now();
  if (hipDeviceSynchronize() != hipSuccess) return 1;
  const auto ended = Clock::now();
  const auto each = [&](auto time) { return std::chrono::duration<double, std::micro>(time).count() / launches; };
  printf("call %.2f us, with its execution %.2f us a launch\n", each(called - start), each(ended - start));
}
