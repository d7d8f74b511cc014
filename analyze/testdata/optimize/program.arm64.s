# A program. The jump is one instruction, so that nobody can land inside what it
# replaces. The numbers in front of comments are offsets in the function.

	.arch	armv8.8-a+mops+pauth

	.macro begin name
	.p2align 4
	.type	\name, %function
\name:
	.endm

	.macro end name
	.size	\name, . - \name
	.endm

	.text
	.globl	plain
begin plain
	mov	w0, #7			// 0
	adr	x1, plain		// 4
	ldr	x2, literal		// 8
	bl	other			// 12
	blr	x1			// 16
	svc	#0			// 20
	cbz	x0, 1f			// 24
	b	other			// 28
1:	br	x1			// 32
end plain
begin other
	tbz	w0, #3, other + 8	// 0
	nop				// 4
symbol_label:
	ret				// 8
end other

begin landing
	bti	c			// 0
	mov	w0, #7			// 4
	ret				// 8
end landing
begin signed
	paciasp				// 0
	autiasp				// 4
	ret				// 8
end signed

# The target is computed from an instruction's size.
begin unresolved
	adr	x1, 1f			// 0
	add	x1, x1, x0, lsl #2	// 4
	br	x1			// 8
1:	nop				// 12
	ret				// 16
end unresolved

begin exclusive
	ldxr	w1, [x0]		// 0
	add	w1, w1, #1		// 4
	stxr	w2, w1, [x0]		// 8
	cbnz	w2, exclusive		// 12
	ret				// 16
end exclusive

begin copy
	mov	x2, #16			// 0
	cpyfp	[x0]!, [x1]!, x2!	// 4
	cpyfm	[x0]!, [x1]!, x2!	// 8
	cpyfe	[x0]!, [x1]!, x2!	// 12
	ret				// 16
end copy

begin traps
	brk	#1			// 0
	hlt	#1			// 4
	udf	#1			// 8
	ret				// 12
end traps

begin link
	blr	x30			// 0
	blraaz	x0			// 4
	blraaz	x16			// 8
	ret				// 12
end link

# pacm makes the instruction behind it sign with its address.
begin signature
	.inst	0xd50324ff		// 0: pacm
	paciasp				// 4
	ret				// 8
end signature

begin undecodable
	nop				// 0
	.inst	0xffffffff		// 4
	ret				// 8
end undecodable

begin data_inside
	nop				// 0
	ret				// 4
literal:
	.quad	7			// 8
	mov	w0, #7			// 16
	ret				// 20
end data_inside
