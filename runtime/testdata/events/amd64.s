# Functions of which one instruction has an event.

	.include "common.inc"
	.text

function load
	mark	load
	mov	8(%rdi), %rax
	add	%rsi, %rax
	ret
end load

function store
	mark	store
	mov	%rsi, 8(%rdi)
	lea	1(%rsi), %rax
	ret
end store

function update
	mark	update
	add	%rsi, 8(%rdi)
	mov	8(%rdi), %rax
	ret
end update

# The event is that of the second instruction.
function second
	xor	%eax, %eax
	mark	second
	mov	8(%rdi), %rcx
	add	%rcx, %rax
	add	%rsi, %rax
	ret
end second

function relative
	mark	relative
	mov	far(%rip), %rax
	add	%rsi, %rax
	ret
end relative

# The stack pointer is 8 above the start of a page.
function push
	push	%rdi
	mark	push
	push	%rsi
	pop	%rax
	pop	%rcx
	add	%rcx, %rax
	ret
end push

# rdi is the stack pointer for one instruction.
function pop
	xchg	%rdi, %rsp
	mark	pop
	pop	%rax
	mov	%rdi, %rsp
	add	%rsi, %rax
	ret
end pop

# rdi is the stack pointer for the return to where it points.
function return
	mov	%rsp, %rdx
	lea	1f(%rip), %rcx
	mov	%rdi, %rsp
	mark	return
	ret
1:
	mov	%rdx, %rsp
	lea	1(%rsi), %rax
	ret
end return

function call
	push	%rdi
	mark	call
	call	leaf
	pop	%rcx
	ret
end call

function indirect
	push	%rdi
	mark	indirect
	call	*(%rdx)
	pop	%rcx
	ret
end indirect

function throughstack
	push	%rdi
	mov	%rdx, %rcx
	sub	%rsp, %rcx
	mark	throughstack
	call	*(%rsp,%rcx)
	pop	%rcx
	ret
end throughstack

function leaf
	lea	(%rdi,%rsi), %rax
	ret
end leaf

# No event, and an entry that becomes a call.
function entered
	mark	entered
	.byte	0x0f, 0x1f, 0x44, 0x00, 0x00
	lea	(%rdi,%rsi), %rax
	ret
end entered

# No event: the program does not use the stack.
function plain
	mark	plain
	lea	(%rdi,%rsi), %rax
	add	$5, %rax
	xor	%rdi, %rax
	ret
end plain

function jump
	mark	jump
	jmp	*%rdi
end jump

function system
	mov	$39, %eax
	mark	system
	syscall
	add	%rcx, %rax
	add	%rsi, %rax
	ret
end system

# The event is that of the second instruction.
function secondsystem
	mov	%esi, %eax
	mark	secondsystem
	syscall
	inc	%rax
	ret
end secondsystem

function interrupt
	mov	%rdi, %rax
	mark	interrupt
	int	$0x80
	add	%rsi, %rax
	ret
end interrupt

function trap
	mov	%rdi, %rax
	mark	trap
	.byte	0xcd, 3
	add	%rsi, %rax
	ret
end trap

function breakpoint
	mov	%rdi, %rax
	mark	breakpoint
	int3
	add	%rsi, %rax
	ret
end breakpoint

function divide
	mov	%rdi, %rax
	xor	%edx, %edx
	mark	divide
	div	%rsi
	add	%rdx, %rax
	ret
end divide

function dividememory
	mov	%rdi, %rax
	xor	%edx, %edx
	mov	$100, %edi
	mark	dividememory
	divl	zero(%rip)
	add	%rdx, %rax
	add	%rdi, %rax
	ret
end dividememory

function undefined
	mov	%rdi, %rax
	mark	undefined
	sha1nexte %xmm1, %xmm0
	add	%rsi, %rax
	ret
end undefined

function unknown
	mov	%rdi, %rax
	mark	unknown
	vpaddd	%xmm2, %xmm1, %xmm0
	add	%rsi, %rax
	ret
end unknown

function halt
	mov	%rdi, %rax
	mark	halt
	hlt
	add	%rsi, %rax
	ret
end halt

# rsi bytes from rdi to 8 bytes in front of a page's end and on.
function copy
	mov	%rsi, %rcx
	mov	%rdi, %rsi
	lea	0x10ef8(%rdi), %rdi
	mark	copy
	rep movsb
	mov	%rdi, %rax
	ret
end copy

# The instruction with the event goes on in the next page, and so would a jump in
# the place of the one before.
	.p2align 12
	.skip	4096 - 4
	.globl	crossing
	.type	crossing, %function
crossing:
	.byte	0xeb, 0 # jmp .+2
	mark	crossing
	lea	5(%rdi,%rsi), %rax
	add	$5, %rax
	ret
end crossing
	.p2align 12

	.section __patchable_function_entries, "aw"
	.quad	entered

	.data
	.globl	zero
zero:
	.quad	0
	.p2align 12
	.quad	0
	.globl	far
far:
	.quad	1000
	.p2align 12
