// The last lane loads what nobody has written, and other lanes use it: by its number, through a table of lanes, from the other half of the wave, and
// with a DPP control. Who takes the value of another lane is right.
//
//# [buffers]
//# x = { dtype = "u32", shape = 128, fill = "iota", written = ["0..31", "32..63", "64..95", "96..127"] }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["x", "u32[128] zeros"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    u32 t = rf_thread();
    u32 named = x[t]; // FAULT: Uninitialised
    if (__builtin_amdgcn_readlane(named, 31) > 5) y[t] = 1;
    u32 table = x[32 + t]; // FAULT: Uninitialised
    table = __builtin_amdgcn_ds_bpermute(4 * (31 - t), table);
    y[32 + t] = table;
    u32 half = x[64 + t]; // FAULT: Uninitialised
    half = __builtin_amdgcn_permlanex16(0, half, 0x76543210, 0xFEDCBA98, false, false);
    y[64 + t] = half;
    u32 row = x[96 + t]; // FAULT: Uninitialised
    row = t + __builtin_amdgcn_update_dpp(0, row, 0xB1, 0xF, 0xF, true);
    y[96 + t] = row;
}

KERNEL correct(const u32 *x, u32 *y) {
    u32 t = rf_thread();
    u32 named = x[t];
    if (__builtin_amdgcn_readlane(named, 30) > 5) y[t] = 1;
    u32 table = x[32 + t];
    table = __builtin_amdgcn_ds_bpermute(4 * (31 - t), table);
    y[32 + t] = t > 0 ? table : 0;
    u32 half = x[64 + t];
    half = __builtin_amdgcn_permlanex16(0, half, 0x76543210, 0xFEDCBA98, false, false);
    y[64 + t] = t != 15 ? half : 0;
    u32 row = x[96 + t];
    row = t + __builtin_amdgcn_update_dpp(0, row, 0xB1, 0xF, 0xF, true);
    y[96 + t] = t != 30 ? row : 0;
}
