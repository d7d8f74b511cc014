# A program at fixed addresses. Each function is there for the cases of its name
# in amd64.tsv; the numbers in front of comments are offsets in it.

	.macro begin name
	.balign	16, 0x90
	.type	\name, @function
\name:
	.endm

# Directly behind the function before it, which so has no padding.
	.macro tight name
	.type	\name, @function
\name:
	.endm

	.macro end name
	.size	\name, . - \name
	.endm

	.text

# First in the text: the program starts at its offset 1.
begin entry_inside
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end entry_inside

begin plain
	push	%rbp			# 0
	mov	%rsp, %rbp		# 1
	xor	%eax, %eax		# 4
	pop	%rbp			# 6
	ret				# 7
end plain

# As long as a jump, and shorter by a byte, without padding behind.
begin exact
	xor	%eax, %eax		# 0
	xor	%edx, %edx		# 2
	ret				# 4
end exact
tight short
	xor	%eax, %eax		# 0
	pop	%rbp			# 2
	ret				# 3
end short
tight tail
	.byte	0xe9			# 0: jmp plain
	.long	plain - . - 4
end tail

# Padding of 4 bytes makes room for a jump over ret, 3 bytes do not.
begin padding_4
	ret				# 0
end padding_4
	.skip	4, 0xcc
tight padding_3
	ret				# 0
end padding_3
	.skip	3, 0xcc
tight padding_stop
	ret				# 0
end padding_stop

# Execution goes on into what follows.
begin falls
	mov	%edi, %eax		# 0
	inc	%eax			# 2
end falls

# Somebody jumps into the padding.
begin padding_entered
	ret				# 0
end padding_entered
begin padding_behind
	ret				# 0
end padding_behind
begin padding_jumps
	jmp	padding_entered + 4	# 0
	jmp	padding_behind + 5
end padding_jumps

begin branch_inside
	test	%edi, %edi		# 0
	jz	1f			# 2
	xor	%eax, %eax		# 4
1:	inc	%eax			# 6
	dec	%eax			# 8
	ret				# 10
end branch_inside

begin loop_start
1:	dec	%ecx			# 0
	jnz	1b			# 2
	ret				# 4
end loop_start

begin loop_middle
	inc	%eax			# 0
1:	dec	%ecx			# 2
	jnz	1b			# 4
	ret				# 6
end loop_middle

begin entered
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end entered
begin enters
	nop				# 0
	jmp	entered + 1		# 1
end enters

# A call from elsewhere, into the middle and behind the region.
begin called
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end called
begin calls
	call	called + 4		# 0
	call	called + 5		# 5
	ret				# 10
end calls

begin middle
	mov	$0xc3c0ff, %eax		# 0, with inc %eax; ret inside
	ret				# 5
end middle
begin middle_jumps
	jmp	middle + 1		# 0
end middle_jumps

begin dead
	jmp	1f			# 0
	nop				# 2
	nop				# 3
	nop				# 4
1:	ret				# 5
end dead
begin dead_entered
	jmp	1f			# 0
	nop				# 2
	nop				# 3
1:	mov	$7, %eax		# 4
	ret				# 9
end dead_entered
begin dead_whole
	jmp	1f			# 0
	mov	$7, %eax		# 2
1:	ret				# 7
end dead_whole

begin call_register
	call	*%rax			# 0
	mov	%rax, %rbx		# 2
	ret				# 5
end call_register
begin call_last
	push	%rbx			# 0
	call	plain			# 1
	pop	%rbx			# 6
	ret				# 7
end call_last
# setjmp returns twice, behind the call.
begin saves
	mov	%rsp, %rdi		# 0
	call	setjmp			# 3
	test	%eax, %eax		# 8
	mov	%eax, %ecx		# 10
	ret				# 12
end saves
begin saves_register
	lea	setjmp(%rip), %rax	# 0
	call	*%rax			# 7
	test	%eax, %eax		# 9
	ret				# 11
end saves_register
begin setjmp
	xor	%eax, %eax		# 0
	ret				# 2
end setjmp

begin system
	mov	$39, %eax		# 0
	syscall				# 5
	mov	%rax, %rdi		# 7
	ret				# 10
end system
begin system_int
	mov	$20, %eax		# 0
	int	$0x80			# 5
	mov	%rax, %rdi		# 7
	ret				# 10
end system_int

begin symbol_inside
	push	%rbx			# 0
symbol_label:
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
symbol_end:
	ret				# 5
end symbol_inside

# What data holds: an offset of 1, and of 5.
begin pointed
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end pointed
begin pointed_behind
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end pointed_behind
begin initializer
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end initializer

begin taken
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken
begin taker
	lea	taken + 1(%rip), %rax	# 0
	lea	taken + 5(%rip), %rcx	# 7
	ret				# 14
end taker
begin taken_immediate
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken_immediate
begin taker_immediate
	mov	$taken_immediate + 4, %edi	# 0
	ret				# 5
end taker_immediate
begin taken_extended
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken_extended
begin taker_extended
	mov	$taken_extended + 1, %rdi	# 0
	ret				# 7
end taker_extended
begin taken_pushed
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken_pushed
begin taker_pushed
	push	$taken_pushed + 1	# 0
	ret				# 5
end taker_pushed

begin switch_absolute
	cmp	$2, %edi		# 0
	ja	3f			# 3
	mov	%edi, %edi		# 5
	jmp	*table_absolute(, %rdi, 8)	# 7
.Labsolute_0:
	xor	%eax, %eax		# 14
.Labsolute_1:
	inc	%eax			# 16
.Labsolute_2:
	mov	$7, %eax		# 18
3:	ret				# 23
end switch_absolute

begin switch_relative
	cmp	$2, %edi		# 0
	ja	3f			# 3
	lea	table_relative(%rip), %rdx	# 5
	mov	%edi, %edi		# 12
	movslq	(%rdx, %rdi, 4), %rax	# 14
	add	%rdx, %rax		# 18
	notrack jmp *%rax		# 21
.Lrelative_0:
	xor	%eax, %eax		# 24
.Lrelative_1:
	inc	%eax			# 26
.Lrelative_2:
	mov	$7, %eax		# 28
3:	ret				# 33
end switch_relative

# The third entry of the table is another's: the comparison excludes it.
begin switch_bounded
	cmp	$1, %edi		# 0
	ja	3f			# 3
	lea	table_bounded(%rip), %rdx	# 5
	mov	%edi, %edi		# 12
	movslq	(%rdx, %rdi, 4), %rax	# 14
	add	%rdx, %rax		# 18
	jmp	*%rax			# 21
.Lbounded_0:
	mov	$6, %eax		# 23
.Lbounded_1:
	push	%rbx			# 28
.Lbounded_2:
	mov	%rdi, %rbx		# 29
	pop	%rbx			# 32
3:	ret				# 33
end switch_bounded

# An entry leads into the part of the function that is seldom executed.
begin switch_cold
	cmp	$1, %edi		# 0
	ja	3f			# 3
	lea	table_cold(%rip), %rdx	# 5
	mov	%edi, %edi		# 12
	movslq	(%rdx, %rdi, 4), %rax	# 14
	add	%rdx, %rax		# 18
	jmp	*%rax			# 21
.Lcold_0:
	xor	%eax, %eax		# 23
3:	ret				# 25
end switch_cold
begin switch_cold.cold
	push	%rbx			# 0
.Lcold_1:
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end switch_cold.cold

# An entry is no address of an instruction.
begin switch_broken
	cmp	$1, %edi		# 0
	ja	3f			# 3
	mov	%edi, %edi		# 5
	jmp	*table_broken(, %rdi, 8)	# 7
.Lbroken_0:
	xor	%eax, %eax		# 14
	xor	%edx, %edx		# 16
	nop				# 18
3:	ret				# 19
end switch_broken
# The table is nowhere.
begin switch_nowhere
	cmp	$1, %edi		# 0
	ja	3f			# 3
	mov	%edi, %edi		# 5
	jmp	*0x70000000(, %rdi, 8)	# 7
	xor	%eax, %eax		# 14
	xor	%edx, %edx		# 16
	nop				# 18
3:	ret				# 19
end switch_nowhere

# The target is computed from an instruction's size.
begin unresolved
	lea	.Lcomputed(%rip), %rax	# 0
	lea	(%rax, %rdi, 2), %rax	# 7
	jmp	*%rax			# 11
.Lcomputed:
	inc	%eax			# 13
	inc	%eax			# 15
	inc	%eax			# 17
	mov	$7, %eax		# 19
	ret				# 24
end unresolved

# The target is a whole address, which is written down somewhere.
begin pointer
	push	%rbx			# 0
	mov	%rsi, %rbx		# 1
	pop	%rbx			# 4
	jmp	*%rdi			# 5
end pointer

begin landing
	endbr64				# 0
	mov	$7, %eax		# 4
	ret				# 9
end landing
begin landing_nop
	endbr64				# 0
	.byte	0x0f, 0x1f, 0x44, 0, 0	# 4: a NOP
	ret				# 9
end landing_nop
begin landing_inside
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	endbr64				# 4
	ret				# 8
end landing_inside
begin landing_behind
	mov	$7, %eax		# 0
	endbr64				# 5
	ret				# 9
end landing_behind

begin undecodable
	push	%rbx			# 0
	.byte	0x06			# 1
	mov	$7, %eax		# 2
	ret				# 7
end undecodable

begin data_inside
	push	%rbx			# 0
	pop	%rbx			# 1
	ret				# 2
"$d":
	.byte	6, 6, 6, 6, 6		# 3
"$x":
	mov	$7, %eax		# 8
	ret				# 13
end data_inside

begin traps
	ud2				# 0
	push	%rbx			# 2
	ud2				# 3
	push	%rbx			# 5
	int3				# 6
	push	%rbx			# 7
	pop	%rbx			# 8
	ret				# 9
end traps

begin prefixed_branch
	push	%rbx			# 0
	.byte	0x66, 0xe9		# 1: jmp plain, with an operand-size prefix
	.long	plain - . - 4
end prefixed_branch

begin far_call
	lcall	*(%rax)			# 0
	push	%rbx			# 2
	lcall	*(%rax)			# 3
	ret				# 5
end far_call

begin into_itself
	jmp	. + 1			# 0
	.byte	0xc0, 0xc8, 1		# 2: ror $1, %al
	push	%rbx			# 5
	jmp	. + 1			# 6
	.byte	0xc0, 0xc8, 1		# 8
	ret				# 11
end into_itself

# A thrown exception goes on behind the frame's own return.
begin unwinds
	.cfi_startproc
	.cfi_personality 0x1b, personality
	.cfi_lsda 0x1b, .Lhandlers
	push	%rbx			# 0
.Lthrows:
	call	plain			# 1
.Lthrown:
	pop	%rbx			# 6
	ret				# 7
	mov	%rax, %rdi		# 8
.Lcaught:
	xor	%edx, %edx		# 11
	mov	%rdx, %rax		# 13
	pop	%rbx			# 16
	ret				# 17
	.cfi_endproc
end unwinds
begin personality
	ret
end personality

# A pointer that stands in the text.
begin pointed_from_text
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end pointed_from_text
begin jumps_from_text
	mov	1f(%rip), %rax		# 0
	jmp	*%rax			# 7
	.balign	8
1:	.quad	pointed_from_text + 1	# 16
end jumps_from_text

begin transaction
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
1:	pop	%rbx			# 4
	ret				# 5
end transaction
begin begins
	xbegin	transaction + 4		# 0
	ret				# 6
end begins

begin taken_long
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken_long
begin taker_long
	movabs	$taken_long + 1, %rdi	# 0
	ret				# 10
end taker_long
begin taken_stored
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end taken_stored
begin taker_stored
	movq	$taken_stored + 1, (%rdi)	# 0
	ret				# 7
end taker_stored

# The table's addresses have 4 bytes.
begin switch_narrow
	cmp	$2, %edi		# 0
	ja	3f			# 3
	mov	%edi, %edi		# 5
	mov	table_narrow(, %rdi, 4), %eax	# 7
	jmp	*%rax			# 14
.Lnarrow_0:
	xor	%eax, %eax		# 16
.Lnarrow_1:
	inc	%eax			# 18
.Lnarrow_2:
	mov	$7, %eax		# 20
3:	ret				# 25
end switch_narrow

# The instruction's own address comes from a call.
begin pops
	call	1f			# 0
1:	pop	%rax			# 5
	add	$9, %rax		# 6
	jmp	*%rax			# 10
	nop				# 12
	nop				# 13
	xor	%eax, %eax		# 14
	xor	%edx, %edx		# 16
	ret				# 18
end pops

# Parts of a function with a computed jump: one that nothing else leads to, one
# that a branch leads to, and a function that it calls at its end.
begin parted
	test	%edi, %edi		# 0
	jz	part			# 2
	js	1f			# 8
	imul	$6, %rdi, %rdi		# 10
	lea	parted.cold(%rdi), %rax	# 14
	jmp	*%rax			# 21
1:	jmp	no_part			# 23
end parted
begin parted.cold
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end parted.cold
	.skip	128, 0x90
begin part
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end part
begin no_part
	push	%rbx			# 0
	mov	%rdi, %rbx		# 1
	pop	%rbx			# 4
	ret				# 5
end no_part

	.section .gcc_except_table, "a"
.Lhandlers:
	.byte	0xff			# landing pads count from the function's start
	.byte	0xff			# no table of types
	.byte	0x01			# call sites are ULEB128 numbers
	.uleb128 .Lsites_end - .Lsites
.Lsites:
	.uleb128 .Lthrows - unwinds, .Lthrown - .Lthrows, .Lcaught - unwinds, 0
.Lsites_end:

	.section .rodata
	.p2align 3
table_absolute:
	.quad	.Labsolute_0, .Labsolute_1, .Labsolute_2
table_broken:
	.quad	.Lbroken_0, not_text
table_relative:
	.long	.Lrelative_0 - table_relative, .Lrelative_1 - table_relative, .Lrelative_2 - table_relative
table_bounded:
	.long	.Lbounded_0 - table_bounded, .Lbounded_1 - table_bounded, .Lbounded_2 - table_bounded
table_cold:
	.long	.Lcold_0 - table_cold, .Lcold_1 - table_cold

table_narrow:
	.long	.Lnarrow_0, .Lnarrow_1, .Lnarrow_2

	.data
	.p2align 3
not_text:
	.quad	0
pointer_inside:
	.quad	pointed + 1
pointer_behind:
	.quad	pointed_behind + 5

	.section .init_array, "aw"
	.p2align 3
pointer_init:
	.quad	initializer + 1
