// malloc and free in kernels, by the code of AMD's device library: blocks of many sizes, filled by one kernel, read and freed by another, and passed on within a third.
#include "check.h"

__device__ unsigned words_of(int thread) { return 1 + thread * 37 % 100; }

__global__ void take(unsigned** blocks, int n) {
  const int thread = place();
  if (thread >= n) return;
  unsigned* block = (unsigned*)malloc(words_of(thread) * sizeof(unsigned));
  if (block)
    for (unsigned word = 0; word < words_of(thread); ++word) block[word] = thread;
  blocks[thread] = block;
}

__global__ void give_back(unsigned** blocks, int n, unsigned* without, unsigned* wrong) {
  const int thread = place();
  if (thread >= n) return;
  unsigned* block = blocks[thread];
  if (!block) atomicAdd(without, 1);
  if (block)
    for (unsigned word = 0; word < words_of(thread); ++word)
      if (block[word] != thread) atomicAdd(wrong, 1);
  free(block);
}

// Larger than what the library takes from its own blocks.
__global__ void large(unsigned* answer) {
  unsigned* block = (unsigned*)malloc(1 << 20);
  if (!block) return;
  block[threadIdx.x] = threadIdx.x;
  block[(1 << 18) - 1] = 77;
  answer[threadIdx.x] = block[threadIdx.x] + block[(1 << 18) - 1];
  free(block);
}

// What the library takes its own blocks in is aligned to its size, and the simulated card has 256 MiB for all.
__global__ void slabs(unsigned* count, void** taken) {
  unsigned n = 0;
  while (n < 200 && (taken[n] = malloc(2 << 20))) ++n;
  *count = n;
  while (n > 0) free(taken[--n]);
}

// Blocks go from hand to hand inside one launch: what one workgroup has freed another takes.
__global__ void churn(unsigned* wrong, unsigned bytes) {
  const int thread = place();
  for (int round = 0; round < 2; ++round) {
    const unsigned words = bytes ? bytes / sizeof(unsigned) : words_of(thread + round);
    unsigned* block = (unsigned*)malloc(words * sizeof(unsigned));
    if (!block) continue;
    for (unsigned word = 0; word < words; word += 7) block[word] = thread;
    for (unsigned word = 0; word < words; word += 7)
      if (block[word] != thread) atomicAdd(wrong, 1);
    free(block);
  }
}

int main() {
  const int n = 700;
  unsigned **blocks, *counts, *answers, host[32] = {};
  OK(hipMalloc(&blocks, n * sizeof(unsigned*)));
  OK(hipMalloc(&counts, 2 * sizeof(unsigned)));
  OK(hipMalloc(&answers, sizeof host));
  OK(hipMemset(counts, 0, 2 * sizeof(unsigned)));
  OK(hipMemset(answers, 0, sizeof host));
  for (int launch = 0; launch < 2; ++launch) {
    slabs<<<1, 1>>>(answers, (void**)blocks);
    OK(hipMemcpy(host, answers, sizeof(unsigned), hipMemcpyDeviceToHost));
    if (host[0] < 100 || host[0] >= 128) EQUAL(host[0], 115u);
  }
  for (int round = 0; round < 3; ++round) {
    take<<<(n + 127) / 128, 128>>>(blocks, n);
    give_back<<<(n + 127) / 128, 128>>>(blocks, n, counts, counts + 1);
  }
  OK(hipMemcpy(host, counts, 2 * sizeof(unsigned), hipMemcpyDeviceToHost));
  EQUAL(host[0], 0u);
  EQUAL(host[1], 0u);
  for (unsigned bytes : {0u, 16u, 1000u, 4000u}) churn<<<4, 64>>>(counts, bytes);
  OK(hipMemcpy(host, counts, sizeof(unsigned), hipMemcpyDeviceToHost));
  EQUAL(host[0], 0u);
  large<<<1, 4>>>(answers);
  OK(hipMemcpy(host, answers, sizeof host, hipMemcpyDeviceToHost));
  for (unsigned thread = 0; thread < 4; ++thread) EQUAL(host[thread], thread + 77);
  return finish();
}
