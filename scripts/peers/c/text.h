// What the decoders in C have in common: they read a text, go over it, and print a line
// as Go's benchmarks do, after a line with the version of the library.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A decoder returns the length of the instruction at p, 0 where there is none.
typedef size_t decoder(const uint8_t *p, size_t left, uint64_t addr);

static double on_cpu(void) {
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

// over goes over the text once, and returns the number of instructions.
static size_t over(const uint8_t *text, size_t size, size_t unit, decoder *decode) {
	size_t n = 0;
	for (size_t at = 0; at + unit <= size; n++) {
		size_t len = decode(text + at, size - at, at);
		at += len ? len : unit;
	}
	return n;
}

static int measure(const char *peer, const char *isa, const char *work, const char *file, decoder *decode) {
	FILE *f = fopen(file, "rb");
	if (!f || fseek(f, 0, SEEK_END))
		return perror(file), 1;
	size_t size = ftell(f), unit = strcmp(isa, "amd64") ? 4 : 1;
	uint8_t *text = malloc(size + 16);
	rewind(f);
	if (!text || fread(text, 1, size, f) != size)
		return perror(file), 1;
	memset(text + size, 0, 16);
	over(text, size / 16, unit, decode);
	double start = on_cpu();
	size_t n = over(text, size, unit, decode);
	printf("BenchmarkDecode/isa=%s/work=%s/peer=%s 1 %.3f ns/inst %zu insts\n", isa, work, peer, (on_cpu() - start) / n, n);
	return 0;
}
