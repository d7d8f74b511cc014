// One stack machine, dispatched in three ways: by a switch, by a table of
// labels' addresses, and by a table of offsets between labels.

#include "guest.h"

enum { STACK = 32, STEPS = 4096 };

// The instructions: name, operand bytes, what it does.
#define INSTRUCTIONS(I) \
	I(NOP, 0, ) \
	I(PUSH, 1, push((int8_t)operand[0])) \
	I(INPUT, 0, push(input)) \
	I(DUP, 0, a = pop(); push(a); push(a)) \
	I(DROP, 0, sp--) \
	I(SWAP, 0, a = pop(); b = pop(); push(a); push(b)) \
	I(OVER, 0, a = stack[(sp - 1) & (STACK - 1)]; push(a)) \
	I(ADD, 0, b = pop(); a = pop(); push(a + b)) \
	I(SUB, 0, b = pop(); a = pop(); push(a - b)) \
	I(MUL, 0, b = pop(); a = pop(); push(a * b)) \
	I(DIV, 0, b = pop(); a = pop(); push(b > 0 ? a / b : a)) \
	I(MOD, 0, b = pop(); a = pop(); push(b > 0 ? a % b : 0)) \
	I(AND, 0, b = pop(); a = pop(); push(a & b)) \
	I(OR, 0, b = pop(); a = pop(); push(a | b)) \
	I(XOR, 0, b = pop(); a = pop(); push(a ^ b)) \
	I(SHL, 0, b = pop(); a = pop(); push(a << (b & 63))) \
	I(SHR, 0, b = pop(); a = pop(); push(a >> (b & 63))) \
	I(NEG, 0, a = pop(); push(-a)) \
	I(NOT, 0, a = pop(); push(~a)) \
	I(LESS, 0, b = pop(); a = pop(); push((int64_t)a < (int64_t)b)) \
	I(EQUAL, 0, b = pop(); a = pop(); push(a == b)) \
	I(INC, 0, a = pop(); push(a + 1)) \
	I(DEC, 0, a = pop(); push(a - 1)) \
	I(LOAD, 1, push(memory[operand[0] & 7])) \
	I(STORE, 1, a = pop(); memory[operand[0] & 7] = a) \
	I(JUMP, 1, at += (int8_t)operand[0]) \
	I(JZERO, 1, a = pop(); if (!a) at += (int8_t)operand[0]) \
	I(HALT, 0, goto done)

#define NAME(name, ...) OP_##name,
enum { INSTRUCTIONS(NAME) OPS };

#define BYTES(name, bytes, ...) bytes,
static const uint8_t operands[] = { INSTRUCTIONS(BYTES) };

#define push(v) (stack[++sp & (STACK - 1)] = (v))
#define pop() (stack[sp-- & (STACK - 1)])

#define MACHINE \
	uint64_t stack[STACK] = { 0 }, memory[8] = { 0 }, a, b; \
	unsigned long sp = 0, at = 0, steps = 0; \
	const uint8_t *operand; \
	(void)a, (void)b

// Leaves operand and at behind the instruction; what is none does nothing.
#define FETCH \
	if (at >= n || steps++ == STEPS) \
		goto done; \
	op = code[at] % OPS; \
	operand = code + at + 1; \
	at += 1 + operands[op]; \
	if (at > n) \
		goto done

static long result(const uint64_t *stack, const uint64_t *memory)
{
	uint64_t sum = 0;

	for (int i = 0; i < STACK; i++)
		sum = sum * 31 + stack[i];
	for (int i = 0; i < 8; i++)
		sum = sum * 31 + memory[i];
	return sum;
}

long run_switch(const uint8_t *code, size_t n, int64_t input)
{
	MACHINE;
	unsigned op;

	for (;;) {
		FETCH;
		switch (op) {
#define CASE(name, bytes, ...) case OP_##name: __VA_ARGS__; break;
		INSTRUCTIONS(CASE)
		}
	}
done:
	return result(stack, memory);
}

long run_goto(const uint8_t *code, size_t n, int64_t input)
{
#define LABEL(name, ...) &&do_##name,
	static const void *const labels[] = { INSTRUCTIONS(LABEL) };
	MACHINE;
	unsigned op;

	FETCH;
	goto *labels[op];
#define BODY(name, bytes, ...) \
do_##name: \
	__VA_ARGS__; \
	FETCH; \
	goto *labels[op];
	INSTRUCTIONS(BODY)
done:
	return result(stack, memory);
}

long run_offsets(const uint8_t *code, size_t n, int64_t input)
{
#define OFFSET(name, ...) &&to_##name - &&to_NOP,
	static const int32_t offsets[] = { INSTRUCTIONS(OFFSET) };
	MACHINE;
	unsigned op;

	for (;;) {
		FETCH;
		goto *(&&to_NOP + offsets[op]);
#define PLACE(name, bytes, ...) to_##name: __VA_ARGS__; continue;
		INSTRUCTIONS(PLACE)
	}
done:
	return result(stack, memory);
}

// Switches of other forms: an index whose type bounds it, a sparse one, and one
// that only chooses between values.
long classes(const uint8_t *text, size_t n, uint32_t counts[8])
{
	long last = -1;

	for (size_t i = 0; i < n; i++) {
		switch (text[i] & 7) {
		case 0: counts[0]++; last = i; break;
		case 1: counts[1] += text[i]; break;
		case 2: counts[2] ^= text[i]; last ^= 1; break;
		case 3: counts[3] = counts[3] * 3 + 1; break;
		case 4: counts[4] -= i; break;
		case 5: counts[5] |= text[i]; last++; break;
		case 6: counts[6] = ~counts[6]; break;
		case 7: counts[7] += counts[0]; last = counts[7]; break;
		}
		switch (text[i]) {
		case 3: last += 5; break;
		case 17: last ^= 0x55; break;
		case 64: last -= 9; break;
		case 100: counts[0] += 7; break;
		case 133: counts[1] ^= 3; break;
		case 180: counts[2]++; break;
		case 201: last = -last; break;
		case 250: counts[3]--; break;
		}
	}
	return last;
}

long days(long year, long month)
{
	switch (month) {
	case 1: case 3: case 5: case 7: case 8: case 10: case 12:
		return 31;
	case 4: case 6: case 9: case 11:
		return 30;
	case 2:
		return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28;
	}
	return -1;
}
