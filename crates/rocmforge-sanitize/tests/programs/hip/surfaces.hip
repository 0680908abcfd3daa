// Surfaces over arrays: elements are read and written by byte offsets in x; textures over the same arrays see what was written.
// HIP 5's header makes floats of integers before it stores them; those are stored here as later headers do it, by their bits.
#include "check.h"

constexpr int W = 24, H = 10, D = 5;

__device__ unsigned char make(int n, unsigned char) { return (unsigned char)(n * 7); }
__device__ short make(int n, short) { return short(n * 31 - 300); }
__device__ int make(int n, int) { return n * 100003 - 7; }
__device__ float make(int n, float) { return n * 0.375f - 4; }
__device__ uchar4 make(int n, uchar4) { return {(unsigned char)n, (unsigned char)(n + 1), (unsigned char)(n * 3), 200}; }
__device__ ushort2 make(int n, ushort2) { return {(unsigned short)(n * 11), (unsigned short)(n + 40000)}; }
__device__ float2 make(int n, float2) { return {n * 0.5f, -n * 0.25f}; }
__device__ float4 make(int n, float4) { return {n * 0.5f, -n * 0.25f, 1.0f, n + 0.125f}; }
__device__ int4 make(int n, int4) { return {n, -n, n * 5, 1 << 30}; }

template <typename T> __device__ bool same(const T& a, const T& b) {
  bool all = true;
  for (size_t n = 0; n < sizeof(T); n++) all = all && ((const char*)&a)[n] == ((const char*)&b)[n];
  return all;
}

template <typename T> constexpr bool floats = std::is_same_v<T, float> || std::is_same_v<T, float2> || std::is_same_v<T, float4>;

__device__ int4 bits(unsigned char v) { return {v, 0, 0, 0}; }
__device__ int4 bits(short v) { return {v, 0, 0, 0}; }
__device__ int4 bits(int v) { return {v, 0, 0, 0}; }
__device__ int4 bits(uchar4 v) { return {v.x, v.y, v.z, v.w}; }
__device__ int4 bits(ushort2 v) { return {v.x, v.y, 0, 0}; }
__device__ int4 bits(int4 v) { return v; }
__device__ void from(unsigned char& v, int4 b) { v = b.x; }
__device__ void from(short& v, int4 b) { v = b.x; }
__device__ void from(int& v, int4 b) { v = b.x; }
__device__ void from(uchar4& v, int4 b) { v = {(unsigned char)b.x, (unsigned char)b.y, (unsigned char)b.z, (unsigned char)b.w}; }
__device__ void from(ushort2& v, int4 b) { v = {(unsigned short)b.x, (unsigned short)b.y}; }
__device__ void from(int4& v, int4 b) { v = b; }

__device__ int4 parts(float4::Native_vec_ v) {
  int4 b;
  b.data = __builtin_bit_cast(int4::Native_vec_, v);
  return b;
}

#define SURFACE(object) ((unsigned int ADDRESS_SPACE_CONSTANT*)object)

template <typename T> __device__ void put1(T v, hipSurfaceObject_t s, int x) {
  if constexpr (floats<T>) {
    surf1Dwrite(v, s, x * sizeof(T));
  } else {
    __ockl_image_store_1D(SURFACE(s), x, __builtin_bit_cast(float4::Native_vec_, bits(v).data));
  }
}
template <typename T> __device__ void put2(T v, hipSurfaceObject_t s, int x, int y) {
  if constexpr (floats<T>) {
    surf2Dwrite(v, s, x * sizeof(T), y);
  } else {
    __ockl_image_store_2D(SURFACE(s), int2(x, y).data, __builtin_bit_cast(float4::Native_vec_, bits(v).data));
  }
}
template <typename T> __device__ void put3(T v, hipSurfaceObject_t s, int x, int y, int z) {
  if constexpr (floats<T>) {
    surf3Dwrite(v, s, x * sizeof(T), y, z);
  } else {
    __ockl_image_store_3D(SURFACE(s), int4(x, y, z, 0).data, __builtin_bit_cast(float4::Native_vec_, bits(v).data));
  }
}
template <typename T> __device__ void get1(T* v, hipSurfaceObject_t s, int x) {
  if constexpr (floats<T>) {
    surf1Dread(v, s, x * sizeof(T));
  } else {
    from(*v, parts(__ockl_image_load_1D(SURFACE(s), x)));
  }
}
template <typename T> __device__ void get2(T* v, hipSurfaceObject_t s, int x, int y) {
  if constexpr (floats<T>) {
    surf2Dread(v, s, x * sizeof(T), y);
  } else {
    from(*v, parts(__ockl_image_load_2D(SURFACE(s), int2(x, y).data)));
  }
}
template <typename T> __device__ void get3(T* v, hipSurfaceObject_t s, int x, int y, int z) {
  if constexpr (floats<T>) {
    surf3Dread(v, s, x * sizeof(T), y, z);
  } else {
    from(*v, parts(__ockl_image_load_3D(SURFACE(s), int4(x, y, z, 0).data)));
  }
}

template <typename T> __global__ void write(hipSurfaceObject_t one, hipSurfaceObject_t two, hipSurfaceObject_t three) {
  const int x = threadIdx.x, y = blockIdx.x;
  // What is outside is not written.
  if (x < W + 2) {
    if (y == 0) put1(make(x, T()), one, x);
    if (y < H + 1) put2(make(y * W + x, T()), two, x, y);
    for (int z = 0; z < D + 1 && y < H; z++) put3(make((z * H + y) * W + x, T()), three, x, y, z);
  }
}

template <typename T>
__global__ void read(hipSurfaceObject_t one, hipSurfaceObject_t two, hipSurfaceObject_t three, hipTextureObject_t texture, int* wrong) {
  const int x = threadIdx.x, y = blockIdx.x;
  if (x >= W || y >= H) return;
  T value;
  get1(&value, one, x);
  if (y == 0 && !same(value, make(x, T()))) atomicAdd(&wrong[0], 1);
  get2(&value, two, x, y);
  if (!same(value, make(y * W + x, T()))) atomicAdd(&wrong[1], 1);
  for (int z = 0; z < D; z++) {
    get3(&value, three, x, y, z);
    if (!same(value, make((z * H + y) * W + x, T()))) atomicAdd(&wrong[2], 1);
  }
  if (!same(tex2D<T>(texture, x + 0.5f, y + 0.5f), make(y * W + x, T()))) atomicAdd(&wrong[3], 1);
  // What is outside is zero.
  get2(&value, two, W + 3, y);
  if (!same(value, T())) atomicAdd(&wrong[4], 1);
}

template <typename T> void check() {
  hipChannelFormatDesc format = hipCreateChannelDesc<T>();
  // HIP 5's header says of vectors of unsigned parts that they are signed.
  if (std::is_same_v<T, uchar4> || std::is_same_v<T, ushort2>) format.f = hipChannelFormatKindUnsigned;
  hipArray_t arrays[3];
  hipSurfaceObject_t surfaces[3];
  const hipExtent sizes[3] = {{W, 0, 0}, {W, H, 0}, {W, H, D}};
  hipResourceDesc resource = {};
  resource.resType = hipResourceTypeArray;
  for (int n = 0; n < 3; n++) {
    OK(hipMalloc3DArray(&arrays[n], &format, sizes[n], hipArraySurfaceLoadStore));
    resource.res.array.array = arrays[n];
    OK(hipCreateSurfaceObject(&surfaces[n], &resource));
  }
  resource.res.array.array = arrays[1];
  hipTextureDesc how = {};
  hipTextureObject_t texture;
  OK(hipCreateTextureObject(&texture, &resource, &how, nullptr));
  int *wrong, back[5];
  OK(hipMalloc(&wrong, sizeof(back)));
  OK(hipMemset(wrong, 0, sizeof(back)));
  write<T><<<H + 2, 32>>>(surfaces[0], surfaces[1], surfaces[2]);
  read<T><<<H + 2, 32>>>(surfaces[0], surfaces[1], surfaces[2], texture, wrong);
  OK(hipMemcpy(back, wrong, sizeof(back), hipMemcpyDeviceToHost));
  for (int n = 0; n < 5; n++) EQUAL(back[n], 0);
  OK(hipDestroyTextureObject(texture));
  for (int n = 0; n < 3; n++) {
    OK(hipDestroySurfaceObject(surfaces[n]));
    OK(hipFreeArray(arrays[n]));
  }
  OK(hipFree(wrong));
}

int main() {
  check<unsigned char>();
  check<short>();
  check<int>();
  check<float>();
  check<uchar4>();
  check<ushort2>();
  check<float2>();
  check<float4>();
  check<int4>();
  return finish();
}
