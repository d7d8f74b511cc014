# What the probes of the matrix are put into; the functions are the same in
# every ISA's file.

	.include "common.inc"

# An entry of the exception table.
.macro exception from, to
	.long	\from - ., \to - ., 0
.endm

	.text
	.globl	_text, _stext
_text:
_stext:
	nop

# ((a + b + 5) + a) ^ 3
function straight
	lea	(%rdi,%rsi), %rax
	mark	straight, subject
	add	$5, %rax
	mark	straight, after
	add	%rdi, %rax
	xor	$3, %rax
	ret
end straight

# The same, and the subject is a jump.
function jumping
	lea	5(%rdi,%rsi), %rax
	mark	jumping, subject
	jmp	1f
	ud2
1:
	mark	jumping, after
	add	%rdi, %rax
	xor	$3, %rax
	ret
end jumping

# n + (n - 1) + … + 1
function loop
	xor	%eax, %eax
1:
	mark	loop, body
	add	%rdi, %rax
	dec	%rdi
	mark	loop, branch
	jne	1b
	ret
end loop

# x == 0 ? 7 : 9
function branchy
	test	%rdi, %rdi
	mark	branchy, branch
	je	1f
	mark	branchy, other
	mov	$9, %eax
	ret
1:
	mark	branchy, taken
	mov	$7, %eax
	ret
end branchy

# inner(x) + 1
function outer
	mark	outer, call
	call	inner
	mark	outer, after
	add	$1, %rax
	ret
end outer

# 2 * x
function inner
	mark	inner, entry
	lea	(%rdi,%rdi), %rax
	mark	inner, return
	ret
end inner

# n + (n - 1) + … + 0
function recurse
	mark	recurse, subject
	mov	$0, %eax
	test	%rdi, %rdi
	je	1f
	push	%rdi
	dec	%rdi
	call	recurse
	pop	%rdi
	add	%rdi, %rax
1:
	ret
end recurse

# *p + 1
function load
	mark	load, load
	mov	8(%rdi), %rax
	add	$1, %rax
	ret
end load

# *p + n + 1
function late
	mark	late, subject
	inc	%rsi
	mark	late, load
	mov	8(%rdi), %rax
	add	%rsi, %rax
	ret
end late

# *p + 1; -14 where there is no memory
function fixed
	mark	fixed, load
.Lfixed_load:
	mov	8(%rdi), %rax
	add	$1, %rax
	ret
.Lfixed_fixup:
	mark	fixed, fixup
	mov	$-14, %rax
	ret
end fixed

# A constant, by a load relative to the program counter.
function pcrel
	mark	pcrel, load
	mov	constant(%rip), %rax
	nop
	ret
end pcrel

# 3, where the breakpoint has no effect
function trap
	mov	$1, %eax
	mark	trap, trap
	int3
	mark	trap, after
	add	$2, %eax
	ret
end trap

# f(p), where f is at p + 8
function through
	mark	through, jump
	jmp	*8(%rdi)
end through

# A variable in a page of its own.
function variable
	mark	variable, load
	mov	value(%rip), %rax
	nop
	ret
end variable

# The flags.
function flags
	cmp	%rsi, %rdi
	mark	flags, subject
	pushf
	pop	%rax
	ret
end flags

# *p = v; v
function store
	mark	store, store
	mov	%rsi, 8(%rdi)
	mov	%rsi, %rax
	ret
end store

# f(x) + 1
function indirect
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mark	indirect, call
	call	*%rax
	mark	indirect, after
	add	$1, %rax
	ret
end indirect

# x + 100
function leaf
	mark	leaf, subject
	lea	100(%rdi), %rax
	mark	leaf, after
	nop
	ret
end leaf

# x + 200
function second
	mark	second, subject
	lea	200(%rdi), %rax
	mark	second, after
	nop
	nop
	ret
end second

# x + 300, and the first instruction is a jump
function hop
	mark	hop, subject
	jmp	1f
	ud2
1:
	lea	300(%rdi), %rax
	nop
	ret
end hop

# Counts in memory, as an interrupt does.
function interrupt
	mark	interrupt, subject
	mov	8(%rdi), %rax
	add	$1, %rax
	mov	%rax, 8(%rdi)
	ret
end interrupt

# x + 400, with an entry for others to patch
function entered
	mark	entered, site
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	lea	400(%rdi), %rax
	nop
	ret
end entered

# x + 500, and a NOP as long as a jump
function nopped
	lea	500(%rdi), %rax
	mark	nopped, nop
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
end nopped

# Instructions of every class.
function classes
	push	%rbx
	mov	%rsi, %rax
	add	$1, %rax
	mov	%rax, 8(%rdi)
	add	8(%rdi), %rax
	stc
	pushf
	pop	%rbx
	and	$0x101, %ebx
	add	%rbx, %rax
	stc
	pushf
	clc
	popf
	adc	$0, %rax
	lea	constant(%rip), %rbx
	xor	(%rbx), %rax
	add	constant(%rip), %rax
	call	.Lclasses_helper
	test	%rsi, %rsi
	je	1f
	add	$7, %rax
1:
	jmp	2f
	ud2
2:
	mov	$3, %ecx
3:
	add	%rcx, %rax
	loop	3b
	jrcxz	4f
	ud2
4:
	lea	5f(%rip), %rbx
	jmp	*%rbx
	ud2
5:
	lea	.Lclasses_helper(%rip), %rbx
	call	*%rbx
	push	%rsi
	push	%rsi
	push	%rbx
	pop	%rbx
	call	.Lclasses_drop
	lea	8(%rdi), %rsi
	mov	$2, %ecx
	cld
	xchg	%rax, %rbx
	rep lodsb
	xchg	%rax, %rbx
	cmpxchg	%rax, 8(%rdi)
	setne	%cl
	movzbl	%cl, %ecx
	add	%rcx, %rax
	pop	%rbx
	ret
.Lclasses_helper:
	imul	$3, %rax, %rax
	ret
.Lclasses_drop:
	ret	$16
end classes

	.globl	_etext
_etext:

	kernel

	.section __mcount_loc, "a"
	.quad	entered

	.section .rodata
	.p2align 3
constant:
	.quad	0x1122334455667788

	.data
	.p2align 3
value:
	.quad	42
