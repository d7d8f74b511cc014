/* What a compiler tells an assembler of lines, for every architecture. */
	.file 1 "/src/one.c"
	.file 2 "/src/sub/two.h"
	.text
	.globl _start
_start:
	.loc 1 10 3
	nop
	nop
	.loc 1 11 3
	nop
	.loc 2 100 1
	.rept 100	/* more than an opcode of one byte can advance */
	nop
	.endr
	.loc 1 9 3 is_stmt 0
	nop
	.loc 1 100000 3 is_stmt 1
	nop
	.section .text.more, "ax"
more:
	.loc 2 101 1
	nop
	nop
