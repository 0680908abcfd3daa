// printf of a kernel, by the code of AMD's device library.
#include "check.h"

__global__ void say(int number) {
  printf("block %d, thread %d: %.2f %s %d\n", (int)blockIdx.x, (int)threadIdx.x, threadIdx.x + 0.5, "text", number);
  if (place() == 0) {
    const int characters = printf("no arguments\n");
    printf("%d%% of %#x, %d\n", 100, 42, characters);
  }
}

int main() {
  say<<<2, 3>>>(-7);
  OK(hipDeviceSynchronize());
  return finish();
}
