// llvm ISA WORK FILE: LLVM's disassembler for C writes the text.
#include <llvm-c/Disassembler.h>
#include <llvm-c/Target.h>
#include <llvm/Config/llvm-config.h>
#include "text.h"

static LLVMDisasmContextRef d;

static size_t one(const uint8_t *p, size_t left, uint64_t addr) {
	char line[256];
	return LLVMDisasmInstruction(d, (uint8_t *)p, left < 16 ? left : 16, addr, line, sizeof line);
}

int main(int argc, char **argv) {
	if (argc < 4 || strcmp(argv[2], "text"))
		return 2;
	printf("llvm: LLVM %s\n", LLVM_VERSION_STRING);
	LLVMInitializeAllTargetInfos();
	LLVMInitializeAllTargetMCs();
	LLVMInitializeAllDisassemblers();
	const char *target = "x86_64-linux-gnu", *cpu = "";
	if (!strcmp(argv[1], "arm64"))
		target = "aarch64-linux-gnu";
	if (!strcmp(argv[1], "ppc64le"))
		target = "powerpc64le-linux-gnu", cpu = "pwr10";
	if (!(d = LLVMCreateDisasmCPU(target, cpu, NULL, 0, NULL, NULL)))
		return 1;
	return measure("llvm", argv[1], argv[2], argv[3], one);
}
