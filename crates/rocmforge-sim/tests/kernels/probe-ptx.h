// What probe.hip asks of an AMD compiler, in NVIDIA's words: included before it to make probe-sm_75.ptx.
#define __builtin_amdgcn_workgroup_id_x() __nvvm_read_ptx_sreg_ctaid_x()
#define __builtin_amdgcn_workitem_id_x() __nvvm_read_ptx_sreg_tid_x()
#define __builtin_amdgcn_workgroup_size_x() __nvvm_read_ptx_sreg_ntid_x()
#define __builtin_amdgcn_workgroup_size_y() __nvvm_read_ptx_sreg_ntid_y()
#define __builtin_amdgcn_workgroup_size_z() __nvvm_read_ptx_sreg_ntid_z()
// The barrier orders shared memory as well.
#define __builtin_amdgcn_fence(order, scope)
#define __builtin_amdgcn_s_barrier() __syncthreads()
