// hiprtc: what its own header has, used without an include. Each line is a kernel, and its result on every thread.
#include <cmath>

#include "rtc.h"

struct Probe {
  const char* body;
  // Of thread 5 in a workgroup of 64, with x = 1.5, y = 2.25, n = 0x50, t = 5.
  double expected;
};

// `r` is the result; x, y and n are not known to the compiler.
static const Probe probes[] = {
    {"r = 1;", 1},
    {"r = sinf(x);", sin(1.5)},
    {"r = powf(x, y);", pow(1.5, 2.25)},
    {"r = erff(x);", erf(1.5)},
    {"r = sin((double)x);", sin(1.5)},
    {"r = sin(x) + exp(y) + fabs(-x) + pow(x, 2) + floor(y);", sin(1.5) + exp(2.25) + 1.5 + 2.25 + 2},
    {"r = rsqrtf(x);", 1 / sqrt(1.5)},
    {"r = normcdff(x) + cbrtf(y) + log1pf(x) + tgammaf(y) + atan2f(x, y);", erfc(-1.5 / sqrt(2)) / 2 + cbrt(2.25) + log1p(1.5) + tgamma(2.25) + atan2(1.5, 2.25)},
    {"float s, c; sincosf(x, &s, &c); r = s + 2 * c;", sin(1.5) + 2 * cos(1.5)},
    {"r = fmodf(100 * x, y) + fmod(1e300, 0.75 + x);", fmod(150, 2.25) + fmod(1e300, 2.25)},
    {"r = isnan(x) + 2 * isinf(x) + 4 * isfinite(x) + 8 * signbit(-x);", 12},
    {"r = __expf(x) + __logf(y) + __sinf(x) + __cosf(y);", exp(1.5) + log(2.25) + sin(1.5) + cos(2.25)},
    {"float4 v = make_float4(1, 2, x, 4); v += v * 2.0f; r = v.x + v.y + v.z + v.w;", 25.5},
    {"int2 v; v.x = n; v.y = 3; r = v.x + v.y;", 83},
    {"uchar4 v = make_uchar4(250, 1, 2, 3); double3 d = make_double3(x, y, 1); r = v.x + d.y + sizeof(double3) + alignof(float4);", 250 + 2.25 + 24 + 16},
    {"r = __shfl(t, 3) + 100 * __shfl(t, 1, 4);", 3 + 100 * 5},
    {"r = __shfl_xor(t, 1) + 100 * __shfl_xor((double)t, 2);", 4 + 700},
    {"r = __shfl_down(t, 2) + 100 * __shfl_down(1.0f * t, 4, 8);", 7 + 500},
    {"r = __shfl_up(t, 2) + 100 * __shfl_up((long long)t, 6, 8);", 3 + 500},
    {"r = (double)(__ballot(t & 1) & 0xff);", 0xaa},
    {"r = __any(t == 3) + 2 * __all(t >= 0) + 4 * __all(t > 0);", 3},
    {"r = __popc(n) + __popcll(n) + 10 * __ffs(n) + 100 * __clz(n) + 1000 * (__brev(n) >> 24) + 10000 * __clzll(n);", 2 + 2 + 50 + 2500 + 10000 + 570000},
    {"r = __float_as_int(x) + (double)__int_as_float(0x40000000) + __uint_as_float(__float_as_uint(y));", 0x3fc00000 + 2 + 2.25},
    {"r = __longlong_as_double(__double_as_longlong(x)) + __hiloint2double(__double2hiint(y), __double2loint(y));", 3.75},
    {"r = __float2int_rn(x) + 10 * __float2int_rd(x) + 100 * __float2int_ru(y) + 1000 * __double2int_rz(-x);", 2 + 10 + 300 - 1000},
    {"r = min(1, 2) + 10 * max(3u, n) + 100 * min(x, y) + min((long long)n, 7ll);", 1 + 800 + 150 + 7},
    {"r = __ldg(in + 1);", 2.25},
    {"r = __syncthreads_count(t < 40) + 100 * __syncthreads_and(t < 63) + 1000 * __syncthreads_or(t == 63);", 1040},
    {"r = __mul24(-2, (int)n) + __umulhi(0x80000000u, n) + __umul24(3, n) + __mul64hi(1ll << 62, 8);", -160 + 40 + 240 + 2},
    {"long long a = clock64(), b = wall_clock64(), c = clock(); r = (a >= 0) + (b >= 0) + (c >= 0) + (wall_clock64() >= b);", 4},
    {"assert(in != nullptr); r = 1;", 1},
    {"r = atomicAdd(&sums[0], 1.0f) >= 0; atomicMax(&counts[0], t); __syncthreads(); r += counts[0];", 64},
    {"atomicCAS(&counts[1], 0, 8); atomicExch(&counts[2], 4); atomicSub(&counts[3], 1); __syncthreads(); r = counts[1] + counts[2] + counts[3];", 8 + 4 - 64},
    {"r = __byte_perm(0x33221100, 0x77665544, 0x7604) == 0x77660044;", 1},
    {"__threadfence(); __threadfence_block(); __threadfence_system(); r = __lane_id() + warpSize;", 37},
    {"dim3 a = threadIdx, b = blockDim; r = a.x + b.x + gridDim.x + blockIdx.x;", 70},
};

int main() {
  std::string source = "__device__ float sums[1]; __device__ int counts[4];\n";
  int count = 0;
  for (const Probe& probe : probes) {
    source += "extern \"C\" __global__ void k" + std::to_string(count++) +
              "(const float* in, double* out) { float x = in[0], y = in[1]; unsigned n = (unsigned)in[2]; int t = threadIdx.x; double r = 0; " + probe.body +
              " out[t] = r; }\n";
  }
  source += R"(
extern "C" __global__ void speaks(const float* in, double* out) {
  if (threadIdx.x < 2) printf("thread %d of %u: %.2f %s%%\n", (int)threadIdx.x, (unsigned)blockDim.x, in[0], "a text of more than one packet, so that it is sent in several parts");
  out[threadIdx.x] = 1;
}
extern "C" __global__ void stops(const float* in, double* out) { if (threadIdx.x == 5) assert(in[0] > 2 && "too small"); out[threadIdx.x] = 1; }
)";
  Rtc rtc;
  if (!TRUE(rtc.compile(source))) return finish();
  const float values[] = {1.5f, 2.25f, 80.0f};
  float* in;
  double* out;
  OK(hipMalloc(&in, sizeof values));
  OK(hipMalloc(&out, 64 * sizeof(double)));
  OK(hipMemcpy(in, values, sizeof values, hipMemcpyHostToDevice));
  count = 0;
  for (const Probe& probe : probes) {
    std::string name = "k" + std::to_string(count++);
    double got[64] = {};
    OK(rtc.launch(name.c_str(), 64, {in, out}));
    OK(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    double error = fabs(got[5] - probe.expected) / fabs(probe.expected);
    if (!(error < 2e-6)) {
      printf("%s\n  is %.9g, not %.9g\n", probe.body, got[5], probe.expected);
      wrong_values++;
    }
  }
  OK(rtc.launch("speaks", 64, {in, out}));
  fflush(stdout);
  ANSWERS(hipErrorLaunchFailure, rtc.launch("stops", 64, {in, out}));
  return finish();
}
