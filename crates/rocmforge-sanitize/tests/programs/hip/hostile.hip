// Calls with handles, pointers and sizes that make no sense, from several threads at once: each is answered, none crashes, none waits for ever.
#include <unistd.h>

#include <thread>

#include "check.h"

static char host[200000];
// What calls have given, and what is left of it when others have freed it.
static void* given[256];

struct Random {
  unsigned long long state;
  unsigned long long next() {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
  }
  unsigned below(unsigned limit) { return next() % limit; }
  void* pointer() {
    switch (below(10)) {
      case 0: return nullptr;
      case 1: return (void*)next();
      case 2: return (void*)(unsigned long long)below(65536);
      case 3: return (void*)0x800000000000ull;
      case 4: return (void*)~0ull;
      case 5: return (void*)(0x800000000000ull + below(1 << 24));
      case 6: return (void*)1;
      default: return __atomic_load_n(&given[below(256)], __ATOMIC_RELAXED);
    }
  }
  size_t size() {
    switch (below(8)) {
      case 0: return 0;
      case 1: return ~size_t(0);
      case 2: return size_t(1) << 62;
      case 3: return next();
      case 4: return size_t(1) << 33;
      default: return below(100000);
    }
  }
  // Of memory that is written: gigabytes of it would only take time.
  size_t written() { return below(3) ? below(100000) : ~size_t(0) >> below(30); }
  void keep(void* pointer) { __atomic_store_n(&given[below(256)], pointer, __ATOMIC_RELAXED); }
};

static void calls(int thread, int count) {
  Random r{thread * 0x9E3779B97F4A7C15ull + 1};
  for (int i = 0; i < count; i++) {
    void* p = nullptr;
    size_t size;
    float time;
    hipStream_t stream;
    hipEvent_t event;
    hipGraph_t graph;
    hipGraphExec_t exec;
    hipFunction_t function;
    hipPointerAttribute_t attributes;
    hipFuncAttributes kernel;
    void* arguments[4] = {&time, &time, &time, &time};
    switch (r.below(40)) {
      case 0: hipMalloc(&p, r.size()); r.keep(p); break;
      case 1: (void)hipFree(r.pointer()); break;
      case 2: (void)hipMemcpy(r.pointer(), host, r.below(100000), hipMemcpyHostToDevice); break;
      // The program's own variables stay as they are.
      case 3: (void)hipMemcpy(host, r.pointer(), r.below(100000), hipMemcpyDeviceToHost); break;
      case 4: (void)hipMemcpy((void*)(0x800000000000ull + r.below(1 << 24)), r.pointer(), r.written(), hipMemcpyDefault); break;
      case 5: (void)hipMemset(r.pointer(), r.next(), r.written()); break;
      case 6: (void)hipStreamCreate(&stream); r.keep(stream); break;
      case 7: (void)hipStreamDestroy((hipStream_t)r.pointer()); break;
      case 8: (void)hipStreamSynchronize((hipStream_t)r.pointer()); break;
      case 9: (void)hipStreamQuery((hipStream_t)r.pointer()); break;
      case 10: (void)hipEventCreate(&event); r.keep(event); break;
      case 11: (void)hipEventRecord((hipEvent_t)r.pointer(), (hipStream_t)r.pointer()); break;
      case 12: (void)hipEventDestroy((hipEvent_t)r.pointer()); break;
      case 13: (void)hipEventElapsedTime(&time, (hipEvent_t)r.pointer(), (hipEvent_t)r.pointer()); break;
      case 14: (void)hipEventSynchronize((hipEvent_t)r.pointer()); break;
      case 15: (void)hipModuleUnload((hipModule_t)r.pointer()); break;
      case 16: (void)hipModuleGetFunction(&function, (hipModule_t)r.pointer(), "x"); break;
      case 17:
        (void)hipModuleLaunchKernel((hipFunction_t)r.pointer(), r.below(4), r.next(), 1, r.below(2000), 1, 1, r.below(70000), (hipStream_t)r.pointer(), arguments, nullptr);
        break;
      case 18: (void)hipDeviceSynchronize(); break;
      case 19: (void)hipHostMalloc(&p, r.below(4) ? 4096 : r.size(), r.below(64)); r.keep(p); break;
      case 20: (void)hipHostFree(r.pointer()); break;
      case 21: (void)hipGraphCreate(&graph, r.below(2)); r.keep(graph); break;
      case 22: (void)hipGraphDestroy((hipGraph_t)r.pointer()); break;
      case 23: (void)hipGraphInstantiate(&exec, (hipGraph_t)r.pointer(), nullptr, nullptr, 0); r.keep(exec); break;
      case 24: (void)hipGraphLaunch((hipGraphExec_t)r.pointer(), (hipStream_t)r.pointer()); break;
      case 25: (void)hipSetDevice(r.next()); break;
      case 26: (void)hipMemGetInfo(&size, &size); break;
      case 27: (void)hipMallocPitch(&p, &size, r.size(), r.size()); r.keep(p); break;
      case 28: (void)hipHostRegister(host + r.below(1000), r.below(4) ? r.below(4096) : r.size(), r.below(16)); break;
      case 29: (void)hipHostUnregister(host + r.below(1000)); break;
      case 30: (void)hipPointerGetAttributes(&attributes, r.pointer()); break;
      case 31: (void)hipMemcpy2D(r.pointer(), r.size(), host, r.size(), r.below(100), r.below(100), hipMemcpyHostToDevice); break;
      case 32: (void)hipStreamBeginCapture((hipStream_t)r.pointer(), (hipStreamCaptureMode)r.below(5)); break;
      case 33: (void)hipStreamEndCapture((hipStream_t)r.pointer(), &graph); r.keep(graph); break;
      case 34: (void)hipStreamWaitEvent((hipStream_t)r.pointer(), (hipEvent_t)r.pointer(), r.next()); break;
      case 35: (void)hipGetErrorString((hipError_t)r.next()); (void)hipGetErrorName((hipError_t)r.next()); break;
      case 36: (void)hipMallocManaged(&p, r.below(4096), r.below(8)); r.keep(p); break;
      case 37: (void)hipMemcpyAsync(r.pointer(), host, r.below(100000), hipMemcpyHostToDevice, (hipStream_t)r.pointer()); break;
      case 38: (void)hipLaunchKernel(r.pointer(), dim3(1), dim3(1), nullptr, 0, (hipStream_t)r.pointer()); break;
      case 39: (void)hipFuncGetAttributes(&kernel, r.pointer()); break;
    }
  }
}

// Code objects of random bytes, whose tables lead anywhere, and none at all.
static void modules() {
  Random r{7};
  std::vector<char> image(4096);
  for (int i = 0; i < 400; i++) {
    const char start[] = "\177ELF\2\1\1\100";
    for (char& byte : image) byte = r.below(3) ? 0 : r.next();
    memcpy(image.data(), start, 8);
    if (i % 4 == 1) memcpy(image.data(), "__CLANG_OFFLOAD_BUNDLE__", 24);
    if (i % 4 == 2) memcpy(image.data(), "CCOB\2\0\1\0", 8);
    hipModule_t module;
    TRUE(hipModuleLoadData(&module, image.data()) != hipSuccess);
  }
  for (unsigned long long nowhere : {1ull, 4096ull, 0x800000000000ull, ~0ull, 0x7ull << 60}) {
    hipModule_t module;
    TRUE(hipModuleLoadData(&module, (void*)nowhere) != hipSuccess);
  }
}

static int depth = 0;
static hipStream_t again;
static void callback(hipStream_t, hipError_t, void*) {
  void* p;
  if (hipMalloc(&p, 64) == hipSuccess) (void)hipFree(p);
  if (depth++ < 50) (void)hipStreamAddCallback(again, callback, nullptr, 0);
}

int main() {
  alarm(100);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; thread++) threads.emplace_back(calls, thread, 1500);
  for (std::thread& thread : threads) thread.join();
  (void)hipSetDevice(0);
  (void)hipDeviceReset();
  modules();
  OK(hipStreamCreate(&again));
  (void)hipStreamAddCallback(again, callback, nullptr, 0);
  (void)hipStreamSynchronize(again);
  printf("done\n");
  return finish();
}
