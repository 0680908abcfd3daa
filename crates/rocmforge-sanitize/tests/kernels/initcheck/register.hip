// Assembly that reads a register nobody has written. Only found when it is asked for.
//
//# tools = ["memcheck", "initcheck", "racecheck", "synccheck", "init_registers"]
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32]"]
#include "faulty.h"

KERNEL faulty(u32 *y) {
    u32 value;
    asm volatile("v_add_nc_u32 %0, v40, 1" : "=v"(value) : : "v40");
    y[rf_thread()] = value; // FAULT: UninitialisedRegister
}

KERNEL correct(u32 *y) {
    u32 value;
    asm volatile("v_mov_b32 v40, 6\n\tv_add_nc_u32 %0, v40, 1" : "=v"(value) : : "v40");
    y[rf_thread()] = value;
}
