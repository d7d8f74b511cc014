# Functions of which one instruction has an event.

	.include "common.inc"
	.text

function load
	mark	load
	ld	3, 8(3)
	add	3, 3, 4
	blr
end load

function store
	mark	store
	std	4, 8(3)
	addi	3, 4, 1
	blr
end store

function update
	mark	update
	stdu	4, 8(3)
	ld	3, 0(3)
	blr
end update

function second
	li	5, 0
	mark	second
	ld	6, 8(3)
	add	3, 5, 6
	add	3, 3, 4
	blr
end second

# The stack pointer is at the start of a page.
function push
	mark	push
	stdu	1, -32(1)
	ld	5, 0(1)
	addi	1, 1, 32
	add	3, 3, 4
	blr
end push

function pop
	mr	5, 1
	mr	1, 3
	mark	pop
	ld	3, 0(1)
	mr	1, 5
	add	3, 3, 4
	blr
end pop

function call
	mflr	0
	mark	call
	bl	leaf
	mtlr	0
	blr
end call

function indirect
	mflr	0
	ld	5, 0(5)
	mtctr	5
	mark	indirect
	bctrl
	mtlr	0
	blr
end indirect

function leaf
	add	3, 3, 4
	blr
end leaf

function entered
	nop
	mark	entered
	nop
	add	3, 3, 4
	blr
end entered

function plain
	mark	plain
	add	5, 3, 4
	addi	5, 5, 5
	xor	3, 3, 5
	blr
end plain

function jump
	mtctr	3
	mark	jump
	bctr
end jump

function system
	li	0, 39
	mark	system
	sc
	add	3, 3, 4
	blr
end system

function breakpoint
	mark	breakpoint
	trap
	add	3, 3, 4
	blr
end breakpoint

function trap
	mark	trap
	tdnei	4, 7
	add	3, 3, 4
	blr
end trap

function divide
	mark	divide
	divdu	3, 3, 4
	mr	3, 4
	blr
end divide

function undefined
	mark	undefined
	tbegin.	0
	add	3, 3, 4
	blr
end undefined

	.section __patchable_function_entries, "aw"
	.quad	entered

	.data
	.quad	0
