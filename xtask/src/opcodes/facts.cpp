// Descriptions of AMDGPU instructions: prints what LLVM knows of each instruction that it is given.
//
// Standard input: one instruction a line, as hexadecimal bytes. Standard output: one line each, `?` where the bytes are
// no instruction, otherwise words of the following kinds:
//   reads:REGISTER writes:REGISTER   registers that the encoding has no field for
//   tied                             a source is the old value of a destination; once for each such source
//   source                           the first operand is a source
//   scalar                           the first operand is a scalar register
//   kind:NUMBER                      what a source operand holds (`AMDGPU::OperandType`), `-` where it is only said to be a register
//   load store branch conditional call return
//   flags:HEX                        the target's own flags (`SIInstrFlags`)

#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrDesc.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include <cstdio>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

extern "C" {
void LLVMInitializeAMDGPUTargetInfo();
void LLVMInitializeAMDGPUTargetMC();
void LLVMInitializeAMDGPUDisassembler();
}

using namespace llvm;

static void describe(const MCInst &inst, const MCInstrDesc &description, const MCRegisterInfo &registers) {
  for (auto reg : description.implicit_uses())
    printf("reads:%s ", registers.getName(reg));
  for (auto reg : description.implicit_defs())
    printf("writes:%s ", registers.getName(reg));
  for (unsigned n = 0; n < description.getNumOperands(); n++)
    if (description.getOperandConstraint(n, MCOI::TIED_TO) >= 0)
      printf("tied ");
  if (inst.getNumOperands() > 0 && inst.getOperand(0).isReg()) {
    if (description.getNumDefs() == 0)
      printf("source ");
    if (std::string(registers.getName(inst.getOperand(0).getReg())).rfind("SGPR", 0) == 0)
      printf("scalar ");
  }
  for (unsigned n = description.getNumDefs(); n < description.getNumOperands(); n++) {
    const int kind = description.operands()[n].OperandType;
    if (kind >= MCOI::OPERAND_FIRST_TARGET)
      printf("kind:%d ", kind - MCOI::OPERAND_FIRST_TARGET);
    else if (kind == MCOI::OPERAND_REGISTER)
      printf("kind:- ");
  }
  if (description.mayLoad())
    printf("load ");
  if (description.mayStore())
    printf("store ");
  if (description.isBranch())
    printf("branch ");
  if (description.isConditionalBranch())
    printf("conditional ");
  if (description.isCall())
    printf("call ");
  if (description.isReturn())
    printf("return ");
  printf("flags:%llx\n", (unsigned long long)description.TSFlags);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: facts PROCESSOR < instructions\n");
    return 2;
  }
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUDisassembler();
  const std::string triple = "amdgcn-amd-amdhsa";
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  std::unique_ptr<MCRegisterInfo> registers(target->createMCRegInfo(triple));
  MCTargetOptions options;
  std::unique_ptr<MCAsmInfo> assembly(target->createMCAsmInfo(*registers, triple, options));
  std::unique_ptr<MCInstrInfo> instructions(target->createMCInstrInfo());
  std::unique_ptr<MCSubtargetInfo> processor(target->createMCSubtargetInfo(triple, argv[1], ""));
  MCContext context(Triple(triple), assembly.get(), registers.get(), processor.get());
  std::unique_ptr<MCDisassembler> disassembler(target->createMCDisassembler(*processor, context));
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::vector<uint8_t> bytes;
    for (unsigned byte; words >> std::hex >> byte;)
      bytes.push_back(byte);
    MCInst inst;
    uint64_t size;
    if (disassembler->getInstruction(inst, size, bytes, 0, nulls()) == MCDisassembler::Fail)
      puts("?");
    else
      describe(inst, instructions->get(inst.getOpcode()), *registers);
  }
}
