// Atomics that the lanes of all waves make at two places, whose old values are used: counters that hand out places in a list.
// contended.co: clang++-19 -x hip --offload-device-only --no-gpu-bundle-output -nogpulib -nogpuinc --offload-arch=gfx1100 -O3 contended.hip -o contended.co
extern "C" __attribute__((global, amdgpu_flat_work_group_size(1, 1024))) void append(unsigned *count, unsigned *list) {
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    unsigned place = __hip_atomic_fetch_add(&count[lane & 1], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    list[2 * place + (lane & 1)] = 1;
}
