# A program with what probes meet on ppc64, in either byte order.

	.abiversion 2
	.machine "power10"
	.text

	.globl	main
	.type	main, @function
main:
	addis	2, 12, .TOC. - main@ha
	addi	2, 2, .TOC. - main@l
	.localentry main, . - main
	mflr	0
	std	0, 16(1)
	bl	increment
	cmpwi	3, 0
	beq	1f
	lnia	4
1:	ld	0, 16(1)
	mtlr	0
	blr
	.size	main, . - main

# Between the load and the store no probe may be hit.
	.globl	increment
	.type	increment, @function
increment:
	lwarx	4, 0, 3
	addi	4, 4, 1
	stwcx.	4, 0, 3
	bne	increment
	blr
	.size	increment, . - increment

	.globl	refused
	.type	refused, @function
refused:
	sc
	trap
	mtmsrd	3
	.long	0
	plwz	3, message@pcrel
	blr
	.size	refused, . - refused

	.section .rodata
	.p2align 2
message:
	.long	42
