// Textures over arrays and rows: every number of dimensions, layers, filters, and what is read outside; the reference is the definition.
#include "check.h"
#include <cmath>

constexpr int LANES = 64;

__device__ float4 as4(float v) { return {v, 0, 0, 0}; }
__device__ float4 as4(unsigned char v) { return {float(v), 0, 0, 0}; }
__device__ float4 as4(float2 v) { return {v.x, v.y, 0, 0}; }
__device__ float4 as4(short2 v) { return {float(v.x), float(v.y), 0, 0}; }
__device__ float4 as4(float4 v) { return v; }
__device__ float4 as4(ushort4 v) { return {float(v.x), float(v.y), float(v.z), float(v.w)}; }

enum Call { ONE, TWO, THREE, ONE_LAYERED, TWO_LAYERED, TWO_LEVEL, TWO_GRADIENT };

template <typename T> __global__ void sample(hipTextureObject_t t, Call call, const float4* at, float4* out) {
  const float4 p = at[threadIdx.x];
  float4* to = out + threadIdx.x;
  switch (call) {
    case ONE: *to = as4(tex1D<T>(t, p.x)); break;
    case TWO: *to = as4(tex2D<T>(t, p.x, p.y)); break;
    case THREE: *to = as4(tex3D<T>(t, p.x, p.y, p.z)); break;
    case ONE_LAYERED: *to = as4(tex1DLayered<T>(t, p.x, int(p.w))); break;
    case TWO_LAYERED: *to = as4(tex2DLayered<T>(t, p.x, p.y, int(p.w))); break;
    case TWO_LEVEL: *to = as4(tex2DLod<T>(t, p.x, p.y, 0.0f)); break;
    case TWO_GRADIENT: *to = as4(tex2DGrad<T>(t, p.x, p.y, float2{0.5f, 0.25f}, float2{0.125f, 1.0f})); break;
  }
}

struct Shape {
  Call call;
  int size[3];  // with the layers last
  int space;    // dimensions that are no layer
};

// The texel of an index along one dimension, or -1 outside of a border.
long place(long n, long size, hipTextureAddressMode mode) {
  switch (mode) {
    case hipAddressModeWrap: return ((n % size) + size) % size;
    case hipAddressModeMirror: {
      const long m = ((n % (2 * size)) + 2 * size) % (2 * size);
      return m < size ? m : 2 * size - 1 - m;
    }
    case hipAddressModeClamp: return n < 0 ? 0 : n >= size ? size - 1 : n;
    default: return n < 0 || n >= size ? -1 : n;
  }
}

// Parts of type P as T; read as fractions of `largest` if that is not 0. `pitched`: memory with rows instead of an array.
template <typename T, typename P, typename R> void check(Shape shape, hipTextureDesc how, double largest, bool pitched) {
  const int count = sizeof(T) / sizeof(P);
  const int w = shape.size[0], h = shape.size[1], d = shape.size[2];
  const bool layered = shape.call == ONE_LAYERED || shape.call == TWO_LAYERED;
  std::vector<P> in(size_t(w) * h * d * count);
  for (size_t i = 0; i < in.size(); i++) in[i] = P((i * 7919 + i / 3) % 251);
  hipChannelFormatDesc format = hipCreateChannelDesc<T>();
  // HIP 5's header says of vectors of unsigned parts that they are signed.
  if (P(-1) > P(0)) format.f = hipChannelFormatKindUnsigned;
  hipResourceDesc resource = {};
  hipArray_t array = nullptr;
  void* rows = nullptr;
  if (pitched) {
    size_t pitch;
    OK(hipMallocPitch(&rows, &pitch, w * sizeof(T), h));
    OK(hipMemcpy2D(rows, pitch, in.data(), w * sizeof(T), w * sizeof(T), h, hipMemcpyHostToDevice));
    resource.resType = hipResourceTypePitch2D;
    resource.res.pitch2D = {rows, format, size_t(w), size_t(h), pitch};
  } else {
    const bool one = shape.call == ONE || shape.call == ONE_LAYERED;
    const bool slices = shape.call == THREE || layered;
    OK(hipMalloc3DArray(&array, &format, {size_t(w), one ? 0 : size_t(h), slices ? size_t(d) : 0}, layered ? hipArrayLayered : 0));
    hipMemcpy3DParms copy = {};
    copy.srcPtr = make_hipPitchedPtr(in.data(), w * sizeof(T), w, h);
    copy.dstArray = array;
    copy.extent = make_hipExtent(w, h, d);
    copy.kind = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy));
    resource.resType = hipResourceTypeArray;
    resource.res.array.array = array;
  }
  how.readMode = largest == 0 ? hipReadModeElementType : hipReadModeNormalizedFloat;
  hipTextureObject_t texture;
  OK(hipCreateTextureObject(&texture, &resource, &how, nullptr));

  std::vector<float4> at(LANES), back(LANES);
  for (int i = 0; i < LANES; i++) {
    // Inside and up to a width and a half outside, and never at an edge of a texel.
    const float x = (i * 31 % 97) / 97.0f * 4 - 1.5f, y = (i * 17 % 89) / 89.0f * 4 - 1.5f, z = (i * 11 % 83) / 83.0f * 4 - 1.5f;
    const float away = how.filterMode == hipFilterModePoint ? 0.3f : 0.0f;
    auto edge = [&](float v, int n) { return away == 0 ? v * n : std::floor(v * n) + away; };
    at[i] = {edge(x, w), edge(y, h), edge(z, d), float(i % (d + 2) - 1)};
    if (how.normalizedCoords) at[i] = {at[i].x / w, at[i].y / h, at[i].z / d, at[i].w};
  }
  float4 *places, *out;
  OK(hipMalloc(&places, LANES * sizeof(float4)));
  OK(hipMalloc(&out, LANES * sizeof(float4)));
  OK(hipMemcpy(places, at.data(), LANES * sizeof(float4), hipMemcpyHostToDevice));
  sample<R><<<1, LANES>>>(texture, shape.call, places, out);
  OK(hipMemcpy(back.data(), out, LANES * sizeof(float4), hipMemcpyDeviceToHost));

  for (int i = 0; i < LANES; i++) {
    const float given[3] = {at[i].x, at[i].y, at[i].z};
    long first[3] = {}, behind[3] = {};
    for (int n = 0; n < shape.space; n++) {
      const double texels = how.normalizedCoords ? double(given[n]) * shape.size[n] : double(given[n]);
      long steps = long(std::nearbyint(texels * 256));
      if (how.filterMode == hipFilterModeLinear) steps -= 128;
      first[n] = steps >> 8;
      behind[n] = how.filterMode == hipFilterModeLinear ? steps & 255 : 0;
    }
    long layer = layered ? long(at[i].w) : 0;
    layer = layer < 0 ? 0 : layer >= d ? d - 1 : layer;
    double sum[4] = {};
    for (int corner = 0; corner < 1 << shape.space; corner++) {
      long index[3] = {0, 0, layered ? layer : 0};
      double weight = 1;
      bool inside = true;
      for (int n = 0; n < shape.space; n++) {
        const int step = corner >> n & 1;
        weight *= (step ? behind[n] : 256 - behind[n]) / 256.0;
        hipTextureAddressMode mode = how.addressMode[n];
        if (!how.normalizedCoords && (mode == hipAddressModeWrap || mode == hipAddressModeMirror)) mode = hipAddressModeClamp;
        index[n] = place(first[n] + step, shape.size[n], mode);
        inside = inside && index[n] >= 0;
      }
      if (weight == 0 || !inside) continue;
      for (int k = 0; k < count; k++) {
        const double part = double(in[((index[2] * h + index[1]) * w + index[0]) * count + k]);
        sum[k] += weight * (largest == 0 ? part : double(float(part / largest)));
      }
    }
    const float got[4] = {back[i].x, back[i].y, back[i].z, back[i].w};
    for (int k = 0; k < count; k++) {
      if (!EQUAL(got[k], float(sum[k]))) {
        printf("  call %d of %dx%dx%d, lane %d at %g %g %g %g, part %d, modes %d, linear %d, normalised %d, pitched %d\n", shape.call,
               w, h, d, i, at[i].x, at[i].y, at[i].z, at[i].w, k, how.addressMode[0], how.filterMode, how.normalizedCoords, pitched);
      }
    }
  }
  OK(hipDestroyTextureObject(texture));
  if (array) OK(hipFreeArray(array));
  if (rows) OK(hipFree(rows));
  OK(hipFree(places));
  OK(hipFree(out));
}

int main() {
  const Shape shapes[] = {
      {ONE, {37, 1, 1}, 1},         {TWO, {13, 9, 1}, 2},          {THREE, {7, 5, 6}, 3},       {ONE_LAYERED, {21, 1, 4}, 1},
      {TWO_LAYERED, {11, 6, 3}, 2}, {TWO_LEVEL, {13, 9, 1}, 2}, {TWO_GRADIENT, {13, 9, 1}, 2},
  };
  for (const Shape& shape : shapes) {
    for (int options = 0; options < 16; options++) {
      hipTextureDesc how = {};
      how.normalizedCoords = options & 1;
      how.filterMode = options & 2 ? hipFilterModeLinear : hipFilterModePoint;
      how.addressMode[0] = hipTextureAddressMode(options >> 2);
      how.addressMode[1] = hipTextureAddressMode(3 - (options >> 2));
      how.addressMode[2] = hipAddressModeClamp;
      check<float, float, float>(shape, how, 0, false);
      check<unsigned char, unsigned char, float>(shape, how, 255, false);
      check<ushort4, unsigned short, float4>(shape, how, 65535, false);
      if (how.filterMode == hipFilterModePoint) {
        check<unsigned char, unsigned char, unsigned char>(shape, how, 0, false);
        check<short2, short, short2>(shape, how, 0, false);
      }
      if (shape.call == TWO) {
        check<float4, float, float4>(shape, how, 0, true);
        check<float, float, float>(shape, how, 0, true);
      }
    }
  }
  return finish();
}
