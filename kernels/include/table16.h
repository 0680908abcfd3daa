// Bytes of a table of 16, eight at a time: v_perm_b32 on AMD's targets, prmt in PTX.
//
// Both choose four of eight bytes by three bits each. So the two halves of the table are asked by the low three bits of a nibble, and a third
// instruction chooses between both answers by the fourth bit.
#pragma once
#include "rf.h"

// The bytes of a table, entry i in byte i of (low, high), that the nibbles of q choose: x those of the low nibbles, y those of the high ones.
RF_ARITHMETIC u2 rf_look_up(u32 q, u64 low, u64 high) {
    u32 a = (u32)low, b = (u32)(low >> 32), c = (u32)high, d = (u32)(high >> 32);
#if defined(__CUDA_ARCH__)
    // Four nibbles of 16 bits choose at once: the low and high ones of two bytes.
    u32 three = q & 0x77777777u, fourth = (q >> 1 & 0x44444444u) | 0x32103210u;
    u32 first = __nvvm_prmt(__nvvm_prmt(a, b, three), __nvvm_prmt(c, d, three), fourth);
    u32 second = __nvvm_prmt(__nvvm_prmt(a, b, three >> 16), __nvvm_prmt(c, d, three >> 16), fourth >> 16);
    return {__nvvm_prmt(first, second, 0x6420), __nvvm_prmt(first, second, 0x7531)};
#else
    // A byte of the last operand chooses: 0 to 3 of the second one, 4 to 7 of the first.
    constexpr u32 THREE = 0x07070707u, FOURTH = 0x04040404u, OWN = 0x03020100u;
    u32 x = q & THREE, y = q >> 4 & THREE;
    u32 low_x = __builtin_amdgcn_perm(b, a, x), high_x = __builtin_amdgcn_perm(d, c, x);
    u32 low_y = __builtin_amdgcn_perm(b, a, y), high_y = __builtin_amdgcn_perm(d, c, y);
    return {__builtin_amdgcn_perm(high_x, low_x, (q >> 1 & FOURTH) | OWN), __builtin_amdgcn_perm(high_y, low_y, (q >> 5 & FOURTH) | OWN)};
#endif
}
