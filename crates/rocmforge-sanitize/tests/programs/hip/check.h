// Checks of these programs: each wrong value is printed with its line, and `finish()` is the exit status.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <type_traits>
#include <vector>

#ifndef DEVICE_LIBRARY
// Work-item functions that HIP's header declares and AMD's device library, which is not linked here, defines.
extern "C" __device__ inline size_t __ockl_get_local_id(unsigned d) {
  return d == 0 ? __builtin_amdgcn_workitem_id_x() : d == 1 ? __builtin_amdgcn_workitem_id_y() : __builtin_amdgcn_workitem_id_z();
}
extern "C" __device__ inline size_t __ockl_get_group_id(unsigned d) {
  return d == 0 ? __builtin_amdgcn_workgroup_id_x() : d == 1 ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_z();
}
extern "C" __device__ inline size_t __ockl_get_local_size(unsigned d) {
  return d == 0 ? __builtin_amdgcn_workgroup_size_x() : d == 1 ? __builtin_amdgcn_workgroup_size_y() : __builtin_amdgcn_workgroup_size_z();
}
extern "C" __device__ inline size_t __ockl_get_num_groups(unsigned d) {
  return d == 0   ? __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x()
         : d == 1 ? __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y()
                  : __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z();
}

extern "C" __device__ inline void __atomic_work_item_fence(__cl_mem_fence_flags, __memory_order, __memory_scope scope) {
  if (scope == __memory_scope_work_group) {
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  } else {
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  }
}
extern "C" __device__ inline bool __ockl_wfany_i32(int e) { return __builtin_amdgcn_ballot_w32(e != 0) != 0; }
extern "C" __device__ inline bool __ockl_wfall_i32(int e) { return __builtin_amdgcn_ballot_w32(e == 0) == 0; }
#endif

// The thread's place in a one-dimensional launch.
__device__ inline int place() { return blockIdx.x * blockDim.x + threadIdx.x; }

inline int wrong_values = 0;

template <class T>
void show(const T& value) {
  if constexpr (std::is_pointer_v<T>) {
    printf("%p", (const void*)value);
  } else if constexpr (std::is_floating_point_v<T>) {
    printf("%g", (double)value);
  } else {
    printf("%lld", (long long)value);
  }
}

template <class A, class B>
bool equal(const A& got, const B& expected, const char* what, const char* file, int line) {
  if (got == (A)expected) return true;
  // The first ones say what is wrong.
  if (++wrong_values > 20) return false;
  printf("%s:%d: %s is ", file, line, what);
  show(got);
  printf(", not ");
  show((A)expected);
  printf("\n");
  return false;
}

inline bool status(hipError_t got, hipError_t expected, const char* what, const char* file, int line) {
  if (got == expected) return true;
  if (++wrong_values > 20) return false;
  printf("%s:%d: %s answers %s, not %s\n", file, line, what, hipGetErrorName(got), hipGetErrorName(expected));
  return false;
}

#define EQUAL(got, expected) equal(got, expected, #got, __FILE__, __LINE__)
#define TRUE(condition) equal(bool(condition), true, #condition, __FILE__, __LINE__)
#define ANSWERS(expected, call) status(call, expected, #call, __FILE__, __LINE__)
#define OK(call) ANSWERS(hipSuccess, call)

// The program's exit status.
inline int finish() {
  fflush(stdout);
  return wrong_values == 0 ? 0 : 1;
}
