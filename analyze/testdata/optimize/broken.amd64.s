# Symbols, tables and bytes that no compiler makes.

	.text
	.globl	start
	.type	start, @function
start:
	ret
	.size	start, . - start

# Symbols inside one another.
	.balign	16, 0x90
	.type	outer, @function
outer:
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	.type	inner, @function
inner:
	pop	%rbx			# 4
	mov	$7, %eax		# 5
	ret				# 10
	.size	inner, 4
	mov	$7, %eax		# 11
	ret				# 16
	.size	outer, . - outer

# The same address and other sizes.
	.balign	16, 0x90
	.type	twin_long, @function
	.type	twin_short, @function
twin_long:
twin_short:
	mov	$7, %eax		# 0
	mov	$8, %eax		# 5
	ret				# 10
	.size	twin_long, 11
	.size	twin_short, 3

	.balign	16, 0x90
	.type	sizeless, @function
sizeless:
	mov	$7, %eax		# 0
	ret				# 5

# Nothing of it is an instruction.
	.balign	16, 0x90
	.type	garbage, @function
garbage:
	.fill	16, 1, 0x06
	.size	garbage, . - garbage

# It ends inside an instruction.
	.type	cut, @function
cut:
	push	%rbx			# 0
	push	%rbx			# 1
	mov	$7, %eax		# 2
	.size	cut, 5

	.balign	16, 0x90
	.type	after, @function
after:
	mov	$7, %eax		# 0
	ret				# 5
	.size	after, . - after

# Tables: one that goes on far behind its section, one of words at odd addresses,
# one whose entry is in the middle of an instruction, one whose second entry is
# behind the section, one that is text itself, one at the end of all addresses.
	.macro switch name, count, table
	.balign	16, 0x90
	.type	\name, @function
\name:
	cmp	$\count, %edi		# 0
	ja	3f
	mov	%edi, %edi
	jmp	*\table(, %rdi, 8)
	xor	%eax, %eax
	xor	%edx, %edx
	nop
3:	ret
	.size	\name, . - \name
	.endm

	switch	switch_huge, 0xfffe, table_huge
	switch	switch_odd, 1, table_huge + 3
	switch	switch_middle, 0, table_middle
	switch	switch_last, 1, table_last
	switch	switch_text, 1, switch_text
	switch	switch_negative, 1, -8

# Sizes that go on behind the section.
	.balign	16, 0x90
	.type	wraps, @function
wraps:
	mov	$7, %eax		# 0
	ret				# 5
	.size	wraps, -1
	.balign	16, 0x90
	.type	huge, @function
huge:
	mov	$7, %eax		# 0
	ret				# 5
	.size	huge, 0x10000000
	.balign	16, 0x90
	.type	last, @function
last:
	mov	$7, %eax		# 0
	.byte	0x0f			# 5: the section ends here
	.size	last, 0x100

	.section .rodata
	.balign	8
table_huge:
	.quad	switch_huge + 17
table_middle:
	.quad	switch_middle + 15
table_last:
	.quad	switch_last + 14
