// The variant that a source is compiled for, where it has several: RF_NAME is the name that its kernels have, RF_TYPE that of its type. The compiler
// defines them, as `VARIED` of tools/kernels/src/families.rs has it.
#pragma once
#define RF_JOINED(a, b) a##b
#define RF_JOIN(a, b) RF_JOINED(a, b)
// A macro with arguments that are macros: what they stand for is what it gets.
#define RF_CALL(macro, ...) macro(__VA_ARGS__)
