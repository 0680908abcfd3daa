// Threads that return before a barrier: a card counts the waves that have not ended, CUDA the threads that have not exited. Whole waves and parts of waves
// return, before loops with barriers and within them, from two dimensions, with a result of their own and without.
#include "check.h"

__global__ void reverse(int* out, int n) {
  __shared__ int tile[64];
  int i = threadIdx.x;
  if (i >= n) return;
  tile[i] = i;
  __syncthreads();
  out[i] = tile[n - 1 - i];
}

// Those without an element store, too, before they return.
__global__ void reverse_or_zero(int* out, int n) {
  __shared__ int tile[64];
  int i = threadIdx.x;
  if (i >= n) {
    out[i] = -1;
    return;
  }
  tile[i] = i;
  __syncthreads();
  out[i] = tile[n - 1 - i];
}

// A window of a row slides over a tile with a halo; columns beyond the image have no thread at the barriers.
__global__ void dilate(const int* in, int* out, int width, int height, int radius) {
  __shared__ int tile[64 + 2 * 4];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= width) return;
  for (int y = 0; y < height; ++y) {
    tile[threadIdx.x + 4] = in[y * width + x];
    int last = min((int)blockDim.x, width - (int)(blockIdx.x * blockDim.x)) - 1;
    if ((int)threadIdx.x < radius) {
      int left = x - radius;
      tile[threadIdx.x + 4 - radius] = left < 0 ? 0 : in[y * width + left];
    }
    if ((int)threadIdx.x > last - radius) {
      int right = x + radius;
      tile[threadIdx.x + 4 + radius] = right >= width ? 0 : in[y * width + right];
    }
    __syncthreads();
    int most = 0;
    for (int k = -radius; k <= radius; ++k)
      if (x + k >= 0 && x + k < width) most = max(most, tile[threadIdx.x + 4 + k]);
    out[y * width + x] = most;
    __syncthreads();
  }
}

// Planes of a volume go through LDS; threads outside of the plane leave first.
__global__ void stencil(const float* in, float* out, int nx, int ny, int nz) {
  __shared__ float plane[8][16];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= nx || y >= ny) return;
  for (int z = 0; z < nz; ++z) {
    int at = (z * ny + y) * nx + x;
    plane[threadIdx.y][threadIdx.x] = in[at];
    __syncthreads();
    float sum = plane[threadIdx.y][threadIdx.x];
    if (threadIdx.x > 0) sum += plane[threadIdx.y][threadIdx.x - 1];
    if (threadIdx.y > 0) sum += plane[threadIdx.y - 1][threadIdx.x];
    __syncthreads();
    out[at] = sum;
  }
}

// Sources are brought tile by tile; a thread without a target does not help.
__global__ void kernel_sums(const float* targets, const float* sources, float* sums, int n, int tiles) {
  __shared__ float tile[32];
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= n) return;
  float sum = 0;
  for (int k = 0; k < tiles; ++k) {
    if (threadIdx.x < 32) tile[threadIdx.x] = sources[k * 32 + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 32; ++j) sum += targets[t] * tile[j];
    __syncthreads();
  }
  sums[t] = sum;
}

// Threads leave in the middle of the loop, each after another round.
__global__ void leave_by_and_by(int* rounds) {
  __shared__ int turn;
  int t = threadIdx.x;
  for (int k = 0;; ++k) {
    if (t / 3 == k) {
      rounds[t] = k;
      return;
    }
    if (t == 63) turn = k;
    __syncthreads();
    if (turn != k) rounds[t] = -1;
    __syncthreads();
    if (k == 20) break;
  }
}

int main() {
  int *out, host[64 * 3 + 8];
  OK(hipMalloc(&out, 64 * 4));
  for (int n : {64, 45, 33, 32, 31, 1}) {
    for (int twice = 0; twice < 2; ++twice) {
      OK(hipMemset(out, 0, 64 * 4));
      reverse<<<1, 64>>>(out, n);
      OK(hipMemcpy(host, out, 64 * 4, hipMemcpyDeviceToHost));
      for (int i = 0; i < 64; ++i) EQUAL(host[i], i < n ? n - 1 - i : 0);
    }
    reverse_or_zero<<<1, 64>>>(out, n);
    OK(hipMemcpy(host, out, 64 * 4, hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; ++i) EQUAL(host[i], i < n ? n - 1 - i : -1);
  }
  leave_by_and_by<<<1, 64>>>(out);
  OK(hipMemcpy(host, out, 64 * 4, hipMemcpyDeviceToHost));
  for (int i = 0; i < 63; ++i) EQUAL(host[i], i / 3);

  const int width = 75, height = 5, radius = 2;
  int image[height][width], *in, *dilated, wide[height][width];
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image[y][x] = (x * 37 + y * 11) % 101;
  OK(hipMalloc(&in, sizeof image));
  OK(hipMalloc(&dilated, sizeof image));
  OK(hipMemcpy(in, image, sizeof image, hipMemcpyHostToDevice));
  dilate<<<2, 64>>>(in, dilated, width, height, radius);
  OK(hipMemcpy(wide, dilated, sizeof image, hipMemcpyDeviceToHost));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      int most = 0;
      for (int k = -radius; k <= radius; ++k)
        if (x + k >= 0 && x + k < width && image[y][x + k] > most) most = image[y][x + k];
      EQUAL(wide[y][x], most);
    }

  const int nx = 19, ny = 11, nz = 3;
  float volume[nz][ny][nx], *from, *to, got[nz][ny][nx];
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) volume[z][y][x] = x + 10 * y + 100 * z;
  OK(hipMalloc(&from, sizeof volume));
  OK(hipMalloc(&to, sizeof volume));
  OK(hipMemcpy(from, volume, sizeof volume, hipMemcpyHostToDevice));
  stencil<<<dim3(2, 2), dim3(16, 8)>>>(from, to, nx, ny, nz);
  OK(hipMemcpy(got, to, sizeof volume, hipMemcpyDeviceToHost));
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) {
        float sum = volume[z][y][x];
        if (x % 16) sum += volume[z][y][x - 1];
        if (y % 8) sum += volume[z][y - 1][x];
        EQUAL(got[z][y][x], sum);
      }

  const int targets = 100, tiles = 3;
  float values[targets], sources[tiles * 32], total = 0, *t, *s, *sums, host_sums[targets];
  for (int k = 0; k < targets; ++k) values[k] = k;
  for (int k = 0; k < tiles * 32; ++k) total += sources[k] = k % 5;
  OK(hipMalloc(&t, sizeof values));
  OK(hipMalloc(&s, sizeof sources));
  OK(hipMalloc(&sums, sizeof values));
  OK(hipMemcpy(t, values, sizeof values, hipMemcpyHostToDevice));
  OK(hipMemcpy(s, sources, sizeof sources, hipMemcpyHostToDevice));
  kernel_sums<<<1, 128>>>(t, s, sums, targets, tiles);
  OK(hipMemcpy(host_sums, sums, sizeof values, hipMemcpyDeviceToHost));
  for (int k = 0; k < targets; ++k) EQUAL(host_sums[k], k * total);
  return finish();
}
