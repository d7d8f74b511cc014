# A program, for both byte orders. The jump is one word, so that one can land
# inside what it replaces only at the second word of a prefixed instruction. The
# numbers in front of comments are offsets in the function.

	.abiversion 2
	.machine power10

	.macro begin name
	.balign	16
	.type	\name, @function
\name:
	.endm

	.macro end name
	.size	\name, . - \name
	.endm

	.text
# First in the text: the program starts at its offset 4.
begin entry_suffix
	pli	%r3, 7			# 0
	blr				# 8
end entry_suffix

begin plain
	li	%r3, 7			# 0
	bl	other			# 4
	sc				# 8
	mtctr	%r3			# 12
	bctrl				# 16
	bdnz	other			# 20
	blr				# 24
end plain
begin other
	blr				# 0
end other

begin prefixed
	pli	%r3, 7			# 0
	pla	%r4, other@pcrel	# 8
	plwz	%r5, word@pcrel		# 16
	blr				# 24
end prefixed

begin own_branch
	pli	%r3, 7			# 0
	pli	%r4, 7			# 8
	bdnz	own_branch + 4		# 16
	bdnz	own_branch + 8		# 20
	blr				# 24
end own_branch
begin entered
	pli	%r3, 7			# 0
	blr				# 8
end entered
begin enters
	nop				# 0
	b	entered + 4		# 4
end enters
begin followed
	pli	%r3, 7			# 0
	blr				# 8
end followed
begin follows
	b	followed + 8		# 0
end follows

begin symbol_suffix
	pli	%r3, 7			# 0
	.set	symbol_label, symbol_suffix + 4
	.type	symbol_label, @notype
	blr				# 8
end symbol_suffix

# The local entry point is the suffix, and behind it.
begin local_suffix
	.localentry local_suffix, 4
	pli	%r3, 7			# 0
	blr				# 8
end local_suffix
begin local_behind
	.localentry local_behind, 8
	pli	%r3, 7			# 0
	blr				# 8
end local_behind

begin pointed
	pli	%r3, 7			# 0
	blr				# 8
end pointed
begin pointed_behind
	pli	%r3, 7			# 0
	blr				# 8
end pointed_behind

begin taken
	pli	%r3, 7			# 0
	blr				# 8
end taken
begin taker
	pla	%r3, taken@pcrel + 4	# 0
	blr				# 8
end taker

# The second entry of the table leads into another function.
begin switch
	cmplwi	%r3, 1			# 0
	bgt	1f			# 4
	nop				# 8
	nop				# 12
	pla	%r10, table@pcrel	# 16
	sldi	%r3, %r3, 2		# 24
	lwax	%r9, %r10, %r3		# 28
	add	%r9, %r9, %r10		# 32
	mtctr	%r9			# 36
	bctr				# 40
.Lswitch_0:
	pli	%r3, 7			# 44
1:	blr				# 52
end switch
begin switch.cold
	pli	%r3, 7			# 0
	blr				# 8
end switch.cold

# The target is computed from an instruction's size.
begin unresolved
	pla	%r10, .Lcomputed@pcrel	# 0
	sldi	%r3, %r3, 2		# 8
	add	%r10, %r10, %r3		# 12
	mtctr	%r10			# 16
	bctr				# 20
.Lcomputed:
	nop				# 24
	nop				# 28
	pli	%r3, 7			# 32
	blr				# 40
end unresolved

begin reservation
	lwarx	%r4, 0, %r3		# 0
	addi	%r4, %r4, 1		# 4
	stwcx.	%r4, 0, %r3		# 8
	bne	reservation		# 12
	blr				# 16
end reservation

begin traps
	trap				# 0
	tdi	4, %r3, 7		# 4
	blr				# 8
end traps

begin into_itself
	b	. + 4			# 0
	nop				# 4
	blr				# 8
end into_itself

begin undecodable
	nop				# 0
	.long	0			# 4
	pli	%r3, 7			# 8
	blr				# 16
end undecodable

begin data_inside
	nop				# 0
	blr				# 4
	.set	"$d", data_inside + 8
	.type	"$d", @notype
	.long	7			# 8
	.set	"$x", data_inside + 12
	.type	"$x", @notype
	blr				# 12
end data_inside
# Data that is an operand of the instruction in front of it.
begin data_suffix
	pli	%r3, 7			# 0
	.set	"$d.suffix", data_suffix + 4
	.set	"$x.suffix", data_suffix + 8
	.type	"$d.suffix", @notype
	.type	"$x.suffix", @notype
	blr				# 8
end data_suffix

# A thrown exception goes on at the suffix, and behind it.
begin unwinds
	.cfi_startproc
	.cfi_personality 0x1b, personality
	.cfi_lsda 0x1b, .Lhandlers
.Lthrows:
	bl	other			# 0
	nop				# 4
	pli	%r3, 7			# 8
	pli	%r4, 7			# 16
.Lcaught:
	blr				# 24
	.cfi_endproc
end unwinds
begin personality
	blr
end personality

	.section .gcc_except_table, "a"
.Lhandlers:
	.byte	0xff			# landing pads count from the function's start
	.byte	0xff			# no table of types
	.byte	0x01			# call sites are ULEB128 numbers
	.uleb128 .Lsites_end - .Lsites
.Lsites:
	.uleb128 .Lthrows - unwinds, 4, 12, 0
	.uleb128 4, 4, .Lcaught - unwinds, 0
.Lsites_end:

	.section .rodata
	.balign	4
table:
	.long	.Lswitch_0 - table, switch.cold + 4 - table
word:
	.long	7

	.data
	.balign	8
pointer_suffix:
	.quad	pointed + 4
pointer_behind:
	.quad	pointed_behind + 8
