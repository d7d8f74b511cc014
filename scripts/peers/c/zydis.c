// zydis ISA WORK FILE: amd64 only. "decode" is an instruction with its operands.
#include <Zydis/Zydis.h>
#include "text.h"

static ZydisDecoder d;
static ZydisFormatter format;
static ZydisDecodedInstruction inst;
static ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

static size_t lengths(const uint8_t *p, size_t left, uint64_t addr) {
	(void)addr;
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, p, left, &inst)) ? inst.length : 0;
}

static size_t full(const uint8_t *p, size_t left, uint64_t addr) {
	(void)addr;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, p, left, &inst, operands)) ? inst.length : 0;
}

static size_t text(const uint8_t *p, size_t left, uint64_t addr) {
	char line[256];
	size_t n = full(p, left, addr);
	if (n)
		ZydisFormatterFormatInstruction(&format, &inst, operands, inst.operand_count_visible, line, sizeof line, addr, NULL);
	return n;
}

int main(int argc, char **argv) {
	if (argc < 4 || strcmp(argv[1], "amd64"))
		return 2;
	uint64_t v = ZydisGetVersion();
	printf("zydis: Zydis %d.%d.%d\n", (int)ZYDIS_VERSION_MAJOR(v), (int)ZYDIS_VERSION_MINOR(v), (int)ZYDIS_VERSION_PATCH(v));
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&format, ZYDIS_FORMATTER_STYLE_ATT);
	if (!strcmp(argv[2], "text"))
		return measure("zydis", argv[1], argv[2], argv[3], text);
	return measure("zydis", argv[1], argv[2], argv[3], full) || measure("zydis-no-operands", argv[1], argv[2], argv[3], lengths);
}
