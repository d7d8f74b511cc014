# What the probes of the matrix are put into; the functions are the same in
# every ISA's file.

	.include "common.inc"

# An entry of the exception table.
.macro exception from, to
	.word	\from - ., \to - .
	.hword	0, 0
.endm

	.text
	.globl	_text, _stext
_text:
_stext:
	nop

# ((a + b + 5) + a) ^ 3
function straight
	add	x2, x0, x1
	mark	straight, subject
	add	x2, x2, #5
	mark	straight, after
	add	x2, x2, x0
	eor	x0, x2, #3
	ret
end straight

# The same, and the subject is a jump.
function jumping
	add	x2, x0, x1
	add	x2, x2, #5
	mark	jumping, subject
	b	1f
	udf	#0
1:
	mark	jumping, after
	add	x2, x2, x0
	eor	x0, x2, #3
	ret
end jumping

# n + (n - 1) + … + 1
function loop
	mov	x1, #0
1:
	mark	loop, body
	add	x1, x1, x0
	subs	x0, x0, #1
	mark	loop, branch
	b.ne	1b
	mov	x0, x1
	ret
end loop

# x == 0 ? 7 : 9
function branchy
	nop
	mark	branchy, branch
	cbz	x0, 1f
	mark	branchy, other
	mov	x0, #9
	ret
1:
	mark	branchy, taken
	mov	x0, #7
	ret
end branchy

# inner(x) + 1
function outer
	stp	x29, x30, [sp, #-16]!
	mark	outer, call
	bl	inner
	mark	outer, after
	add	x0, x0, #1
	ldp	x29, x30, [sp], #16
	ret
end outer

# 2 * x
function inner
	mark	inner, entry
	add	x0, x0, x0
	mark	inner, return
	ret
end inner

# n + (n - 1) + … + 0
function recurse
	mark	recurse, subject
	mov	x1, #0
	cbz	x0, 1f
	stp	x0, x30, [sp, #-16]!
	sub	x0, x0, #1
	bl	recurse
	mov	x1, x0
	ldp	x0, x30, [sp], #16
1:
	add	x0, x0, x1
	ret
end recurse

# *p + 1
function load
	mark	load, load
	ldr	x0, [x0, #8]
	add	x0, x0, #1
	ret
end load

# *p + n + 1
function late
	mark	late, subject
	add	x1, x1, #1
	mark	late, load
	ldr	x0, [x0, #8]
	add	x0, x0, x1
	ret
end late

# *p + 1; -14 where there is no memory
function fixed
	mark	fixed, load
.Lfixed_load:
	ldr	x0, [x0, #8]
	add	x0, x0, #1
	ret
.Lfixed_fixup:
	mark	fixed, fixup
	mov	x0, #-14
	ret
end fixed

# A constant, by a load relative to the program counter.
function pcrel
	mark	pcrel, load
	ldr	x0, constant
	nop
	ret
end pcrel

# 3, where the breakpoint has no effect
function trap
	mov	x0, #1
	mark	trap, trap
	brk	#0x123
	mark	trap, after
	add	x0, x0, #2
	ret
end trap

# A variable in a page of its own.
function variable
	mark	variable, load
	ldr	x0, value
	nop
	ret
end variable

# The flags.
function flags
	cmp	x0, x1
	mark	flags, subject
	mrs	x0, nzcv
	ret
end flags

# *p = v; v
function store
	mark	store, store
	str	x1, [x0, #8]
	mov	x0, x1
	ret
end store

# f(x) + 1
function indirect
	stp	x29, x30, [sp, #-16]!
	mov	x2, x0
	mov	x0, x1
	mark	indirect, call
	blr	x2
	mark	indirect, after
	add	x0, x0, #1
	ldp	x29, x30, [sp], #16
	ret
end indirect

# x + 100
function leaf
	mark	leaf, subject
	add	x0, x0, #100
	mark	leaf, after
	nop
	ret
end leaf

# x + 200
function second
	mark	second, subject
	add	x0, x0, #200
	mark	second, after
	nop
	ret
end second

# x + 300, and the first instruction is a jump
function hop
	mark	hop, subject
	b	1f
	udf	#0
1:
	add	x0, x0, #300
	nop
	ret
end hop

# Counts in memory, as an interrupt does.
function interrupt
	mark	interrupt, subject
	ldr	x1, [x0, #8]
	add	x1, x1, #1
	str	x1, [x0, #8]
	ret
end interrupt

# x + 400, with an entry for others to patch
function entered
	nop
	mark	entered, site
	nop
	add	x0, x0, #400
	ret
end entered

# x + 500, and a NOP as long as a jump
function nopped
	add	x0, x0, #500
	mark	nopped, nop
	nop
	ret
end nopped

# Instructions of every class.
function classes
	stp	x19, x30, [sp, #-16]!
	add	x2, x1, #1
	str	x2, [x0, #8]
	ldr	x3, [x0, #8]
	add	x2, x2, x3
	cmp	x2, #1
	mrs	x3, nzcv
	add	x2, x2, x3
	msr	nzcv, x1
	adc	x2, x2, xzr
	adr	x3, constant
	ldr	x4, [x3]
	eor	x2, x2, x4
	adrp	x4, constant
	add	x4, x4, :lo12:constant
	sub	x4, x4, x3
	add	x2, x2, x4
	ldr	x4, constant
	add	x2, x2, x4
	ldr	w4, constant
	add	x2, x2, x4
	ldrsw	x4, constant
	add	x2, x2, x4
	ldr	d0, constant
	fmov	x4, d0
	add	x2, x2, x4
	prfm	pldl1keep, constant
	bl	.Lclasses_helper
	cbz	x1, 1f
	add	x2, x2, #7
1:
	cbnz	x1, 1f
	add	x2, x2, #8
1:
	tbz	x1, #0, 1f
	add	x2, x2, #9
1:
	tbnz	x1, #33, 1f
	add	x2, x2, #10
1:
	b	2f
	udf	#0
2:
	mov	x3, #3
3:
	add	x2, x2, x3
	subs	x3, x3, #1
	b.ne	3b
	b.eq	4f
	udf	#0
4:
	adr	x3, 5f
	br	x3
	udf	#0
5:
	adr	x3, .Lclasses_helper
	blr	x3
	csel	x4, x2, x3, ne
	add	x2, x2, x4
	ldaxr	x4, [sp]
	add	x2, x2, x4
	clrex
	mov	x0, x2
	ldp	x19, x30, [sp], #16
	ret
.Lclasses_helper:
	add	x2, x2, x2, lsl #1
	ret
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
