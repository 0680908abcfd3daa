// Kernels with the HIP header and AMD's device library: printf, assert and malloc as programs write them. README.md has the command
// line.
#include <hip/hip_runtime.h>

extern "C" __global__ void greet(int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) printf("thread %d of %s: %5.2f %c %llx\n", i, "a rather long text", i * 0.5, 'a' + i, 0x123456789abcull + i);
}

extern "C" __global__ void check(int *values, int n) {
    int i = threadIdx.x;
    assert(values[i] < n);
    values[i] += 1;
}

extern "C" __global__ void nodes(unsigned *out, unsigned bytes) {
    unsigned *mine = (unsigned *)malloc(bytes);
    if (mine == nullptr) {
        out[blockIdx.x * blockDim.x + threadIdx.x] = 0;
        return;
    }
    for (unsigned k = 0; k < bytes / 4; k++) mine[k] = threadIdx.x + k;
    unsigned sum = 0;
    for (unsigned k = 0; k < bytes / 4; k++) sum += mine[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
    free(mine);
}
