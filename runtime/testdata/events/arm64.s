# Functions of which one instruction has an event.

	.include "common.inc"
	.text

function load
	mark	load
	ldr	x0, [x0, #8]
	add	x0, x0, x1
	ret
end load

function store
	mark	store
	str	x1, [x0, #8]
	add	x0, x1, #1
	ret
end store

function update
	mark	update
	stp	x1, x2, [x0, #8]!
	ldr	x0, [x0]
	ret
end update

function second
	mov	x2, #0
	mark	second
	ldr	x3, [x0, #8]
	add	x0, x2, x3
	add	x0, x0, x1
	ret
end second

# The literal is out of reach of the copy.
function relative
	mark	relative
	ldr	x0, literal
	add	x0, x0, x1
	ret
end relative

function relativevector
	mark	relativevector
	ldr	d0, literal
	fmov	x0, d0
	add	x0, x0, x1
	ret
end relativevector

# The stack pointer is at the start of a page.
function push
	mark	push
	stp	x0, x1, [sp, #-16]!
	ldp	x2, x3, [sp], #16
	add	x0, x2, x3
	ret
end push

function pop
	mov	x2, sp
	mov	sp, x0
	mark	pop
	ldr	x0, [sp], #16
	mov	sp, x2
	add	x0, x0, x1
	ret
end pop

function call
	mov	x9, x30
	mark	call
	bl	leaf
	mov	x30, x9
	ret
end call

function leaf
	add	x0, x0, x1
	ret
end leaf

function entered
	nop
	mark	entered
	nop
	add	x0, x0, x1
	ret
end entered

function plain
	mark	plain
	add	x2, x0, x1
	add	x2, x2, #5
	eor	x0, x0, x2
	ret
end plain

function jump
	mark	jump
	br	x0
end jump

function system
	mov	x8, #39
	mark	system
	svc	#0
	add	x0, x0, x1
	ret
end system

function hypervisor
	mov	x8, #39
	mark	hypervisor
	hvc	#0
	add	x0, x0, x1
	ret
end hypervisor

function breakpoint
	mark	breakpoint
	brk	#77
	add	x0, x0, x1
	ret
end breakpoint

function divide
	mark	divide
	udiv	x0, x0, x1
	ret
end divide

function undefined
	mark	undefined
	rdvl	x2, #1
	add	x0, x0, x1
	ret
end undefined

function halt
	mark	halt
	wfi
	add	x0, x0, x1
	ret
end halt

	.p2align 12
	.xword	0
literal:
	.xword	1000
	.p2align 12
	.byte	0

	.section .fartext, "ax"
	ret

	.section __patchable_function_entries, "aw"
	.quad	entered

	.data
	.xword	0
