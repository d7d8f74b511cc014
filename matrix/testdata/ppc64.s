# What the probes of the matrix are put into; the functions are the same in
# every ISA's file.

	.abiversion 2
	.machine power9
	.include "common.inc"

# An entry of the exception table.
.macro exception from, to
	.long	\from - ., \to - .
.endm

	.text
	.globl	_text, _stext
_text:
_stext:
	nop

# ((a + b + 5) + a) ^ 3
function straight
	add	5, 3, 4
	mark	straight, subject
	addi	5, 5, 5
	mark	straight, after
	add	5, 5, 3
	xori	3, 5, 3
	blr
end straight

# The same, and the subject is a jump.
function jumping
	add	5, 3, 4
	addi	5, 5, 5
	mark	jumping, subject
	b	1f
	.long	0
1:
	mark	jumping, after
	add	5, 5, 3
	xori	3, 5, 3
	blr
end jumping

# n + (n - 1) + … + 1
function loop
	li	4, 0
	mtctr	3
1:
	mark	loop, body
	add	4, 4, 3
	addi	3, 3, -1
	mark	loop, branch
	bdnz	1b
	mr	3, 4
	blr
end loop

# x == 0 ? 7 : 9
function branchy
	cmpdi	3, 0
	mark	branchy, branch
	beq	1f
	mark	branchy, other
	li	3, 9
	blr
1:
	mark	branchy, taken
	li	3, 7
	blr
end branchy

# inner(x) + 1
function outer
	mflr	0
	std	0, 16(1)
	stdu	1, -32(1)
	mark	outer, call
	bl	inner
	mark	outer, after
	addi	3, 3, 1
	addi	1, 1, 32
	ld	0, 16(1)
	mtlr	0
	blr
end outer

# 2 * x
function inner
	mark	inner, entry
	add	3, 3, 3
	mark	inner, return
	blr
end inner

# n + (n - 1) + … + 0
function recurse
	mark	recurse, subject
	li	4, 0
	cmpdi	3, 0
	beq	1f
	mflr	0
	std	0, 16(1)
	stdu	1, -48(1)
	std	3, 40(1)
	addi	3, 3, -1
	bl	recurse
	mr	4, 3
	ld	3, 40(1)
	addi	1, 1, 48
	ld	0, 16(1)
	mtlr	0
1:
	add	3, 3, 4
	blr
end recurse

# *p + 1
function load
	mark	load, load
	ld	3, 8(3)
	addi	3, 3, 1
	blr
end load

# *p + n + 1
function late
	mark	late, subject
	addi	4, 4, 1
	mark	late, load
	ld	3, 8(3)
	add	3, 3, 4
	blr
end late

# *p + 1; -14 where there is no memory
function fixed
	mark	fixed, load
.Lfixed_load:
	ld	3, 8(3)
	addi	3, 3, 1
	blr
.Lfixed_fixup:
	mark	fixed, fixup
	li	3, -14
	blr
end fixed

# A constant, by an address relative to the program counter.
function pcrel
	mark	pcrel, load
	addpcis	4, 0
1:
	ld	3, constant - 1b(4)
	blr
end pcrel

# 3, where the breakpoint has no effect
function trap
	li	3, 1
	mark	trap, trap
	trap
	mark	trap, after
	addi	3, 3, 2
	blr
end trap

# A variable in a page of its own: its address is the second argument.
function variable
	mark	variable, load
	ld	3, 0(4)
	nop
	blr
end variable

# The flags.
function flags
	cmpd	3, 4
	mark	flags, subject
	mfcr	3
	blr
end flags

# *p = v; v
function store
	mark	store, store
	std	4, 8(3)
	mr	3, 4
	blr
end store

# f(x) + 1
function indirect
	mflr	0
	std	0, 16(1)
	stdu	1, -32(1)
	mr	12, 3
	mtctr	12
	mr	3, 4
	mark	indirect, call
	bctrl
	mark	indirect, after
	addi	3, 3, 1
	addi	1, 1, 32
	ld	0, 16(1)
	mtlr	0
	blr
end indirect

# x + 100
function leaf
	mark	leaf, subject
	addi	3, 3, 100
	mark	leaf, after
	nop
	blr
end leaf

# x + 200
function second
	mark	second, subject
	addi	3, 3, 200
	mark	second, after
	nop
	blr
end second

# x + 300, and the first instruction is a jump
function hop
	mark	hop, subject
	b	1f
	.long	0
1:
	addi	3, 3, 300
	nop
	blr
end hop

# Counts in memory, as an interrupt does.
function interrupt
	mark	interrupt, subject
	ld	4, 8(3)
	addi	4, 4, 1
	std	4, 8(3)
	blr
end interrupt

# x + 400, with an entry for others to patch
function entered
	nop
	mark	entered, site
	nop
	addi	3, 3, 400
	blr
end entered

# x + 500, and a NOP as long as a jump
function nopped
	addi	3, 3, 500
	mark	nopped, nop
	nop
	blr
end nopped

# Instructions of every class.
function classes
	mflr	0
	std	0, 16(1)
	stdu	1, -32(1)
	li	6, 0
	mtcrf	0xff, 6
	addi	5, 4, 1
	std	5, 8(3)
	ld	6, 8(3)
	add	5, 5, 6
	addic	6, 5, -1
	addze	5, 5
	cmpdi	cr1, 5, 0
	mfcr	6
	add	5, 5, 6
	mtcrf	0xff, 5
	mfocrf	6, 0x40
	add	5, 5, 6
	addpcis	6, 0
1:
	ld	7, constant - 1b(6)
	xor	5, 5, 7
	bcl	20, 31, 1f
1:
	mflr	7
	sub	7, 7, 6
	add	5, 5, 7
	bl	.Lclasses_helper
	cmpdi	4, 0
	beq	1f
	addi	5, 5, 7
1:
	bne	1f
	addi	5, 5, 8
1:
	b	2f
	.long	0
2:
	li	6, 3
	mtctr	6
3:
	addi	5, 5, 3
	bdnz	3b
	addpcis	6, 0
1:
	addi	6, 6, 4f - 1b
	mtctr	6
	bctr
	.long	0
4:
	addpcis	6, 0
1:
	addi	6, 6, .Lclasses_helper - 1b
	mtctr	6
	bctrl
	cmpdi	4, 0
	beql	.Lclasses_helper
	ldarx	6, 0, 1
	add	5, 5, 6
	rldicl	5, 5, 3, 0
	mr	3, 5
	addi	1, 1, 32
	ld	0, 16(1)
	mtlr	0
	blr
.Lclasses_helper:
	mulli	5, 5, 3
	blr
end classes

	.p2align 3
constant:
	.quad	0x1122334455667788

	.globl	_etext
_etext:

	kernel

	.section __mcount_loc, "a"
	.quad	entered

	.data
	.p2align 3
value:
	.quad	42
