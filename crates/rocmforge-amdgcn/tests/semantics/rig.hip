// A kernel that is nothing but room for instructions: 4096 words that the tests overwrite. The global index of the lane
// comes in v1. Every register up to v127 and s100 counts as used, and a lane has 256 bytes of private memory.
// Built by build.sh.
extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 1024))) void rig() {
    volatile unsigned own[64];
    const unsigned i = __builtin_amdgcn_workgroup_id_x() * 32 + __builtin_amdgcn_workitem_id_x();
    own[i & 63] = 0;
    asm volatile(".rept 4096\ns_nop 5\n.endr" ::"{v1}"(i) : "vcc", "v127", "s100", "memory");
}
