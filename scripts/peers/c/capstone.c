// capstone ISA WORK FILE: Capstone always writes the text. "decode" asks for its details
// too, which are what tells where a jump leads.
#include <capstone/capstone.h>
#include "text.h"

static csh h;
static cs_insn *inst;

static size_t one(const uint8_t *p, size_t left, uint64_t addr) {
	return cs_disasm_iter(h, &p, &left, &addr, inst) ? inst->size : 0;
}

int main(int argc, char **argv) {
	if (argc < 4)
		return 2;
	int major, minor;
	cs_version(&major, &minor);
	printf("capstone: Capstone %d.%d\n", major, minor);
	cs_arch arch = CS_ARCH_X86;
	cs_mode mode = CS_MODE_64;
	if (!strcmp(argv[1], "arm64"))
		arch = CS_ARCH_ARM64, mode = CS_MODE_LITTLE_ENDIAN;
	if (!strcmp(argv[1], "ppc64le"))
		arch = CS_ARCH_PPC, mode = CS_MODE_64 | CS_MODE_LITTLE_ENDIAN;
	if (cs_open(arch, mode, &h))
		return 1;
	cs_option(h, CS_OPT_DETAIL, strcmp(argv[2], "text") ? CS_OPT_ON : CS_OPT_OFF);
	if (arch == CS_ARCH_X86)
		cs_option(h, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	inst = cs_malloc(h);
	return measure("capstone", argv[1], argv[2], argv[3], one);
}
