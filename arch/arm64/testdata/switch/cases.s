// Indirect jumps as compilers write them, and such that only look alike, for
// build.sh. TestSwitchCases says what is known of each.

	.macro	begin name
	.global	\name
	.type	\name, %function
\name:
	.endm

	.macro	dispatch table, index	// of GCC, entries of a byte
	adrp	x9, \table
	add	x9, x9, :lo12:\table
	ldrb	w10, [x9, \index, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, sxtb #2
	br	x10
0:	nop
	nop
	nop
	nop
	nop
	nop
	nop
	.endm

	.macro	end name
1:	ret
	.size	\name, . - \name
	.endm

	.text
	begin	compare_hi
	cmp	w0, #5
	b.hi	1f
	dispatch bytes, w0
	end	compare_hi

	begin	compare_cs
	cmp	w0, #6
	b.cs	1f
	dispatch bytes, w0
	end	compare_cs

	begin	compare_ls
	cmp	w0, #5
	b.ls	2f
	ret
2:	dispatch bytes, w0
	end	compare_ls

	begin	compare_signed		// says nothing of negative numbers
	cmp	w0, #5
	b.gt	1f
	dispatch bytes, w0
	end	compare_signed

	begin	compare_register
	mov	w3, #5
	cmp	w0, w3
	b.hi	1f
	dispatch bytes, w0
	end	compare_register

	begin	compare_unknown
	cmp	w0, w3
	b.hi	1f
	dispatch bytes, w0
	end	compare_unknown

	begin	compare_other
	cmp	w1, #5
	b.hi	1f
	dispatch bytes, w0
	end	compare_other

	begin	compare_copy
	mov	w2, w0
	cmp	w0, #5
	b.hi	1f
	mov	w4, w2
	dispatch bytes, w4
	end	compare_copy

	begin	compare_equal_too	// two branches on one comparison
	cmp	w0, #5
	b.eq	1f
	b.hi	1f
	dispatch bytes, w0
	end	compare_equal_too

	begin	compare_lost		// the flags come from elsewhere
	cmp	w0, #5
	cmp	w1, w2
	b.hi	1f
	dispatch bytes, w0
	end	compare_lost

	begin	changed_behind
	cmp	w0, #5
	b.hi	1f
	add	w0, w0, #1
	dispatch bytes, w0
	end	changed_behind

	begin	changed_by_call
	cmp	w0, #5
	b.hi	1f
	bl	compare_hi
	dispatch bytes, w0
	end	changed_by_call

	begin	kept_over_call
	cmp	w19, #5
	b.hi	1f
	bl	compare_hi
	dispatch bytes, w19
	end	kept_over_call

	begin	two_bounds		// the greater one counts
	cbz	w1, 3f
	cmp	w0, #3
	b.hi	1f
	b	4f
3:	cmp	w0, #6
	b.hs	1f
4:	dispatch bytes, w0
	end	two_bounds

	begin	one_bound		// the other way has none
	cbz	w1, 4f
	cmp	w0, #3
	b.hi	1f
4:	dispatch bytes, w0
	end	one_bound

	begin	loop_bound		// entered behind the comparison
	b	4f
3:	cmp	w0, #5
	b.hi	1f
4:	dispatch bytes, w0
	b	3b
	end	loop_bound

	begin	masked
	and	w0, w0, #3
	dispatch bytes, w0
	end	masked

	begin	masked_byte		// the range of a byte says little
	and	w0, w0, #0xff
	dispatch bytes, w0
	end	masked_byte

	begin	masked_compared
	and	w1, w0, #0xff
	cmp	w1, #5
	b.hi	1f
	and	w2, w0, #0xff
	dispatch bytes, w2
	end	masked_compared

	begin	masked_less		// what is compared has fewer bits
	and	w1, w0, #0xf
	cmp	w1, #5
	b.hi	1f
	dispatch bytes, w0
	end	masked_less

	begin	field
	ubfx	w0, w0, #4, #2
	dispatch bytes, w0
	end	field

	begin	spilled_index
	sub	sp, sp, #16
	str	w0, [sp, #12]
	cmp	w0, #5
	b.hi	1f
	ldr	w1, [sp, #12]
	dispatch bytes, w1
	end	spilled_index

	begin	reloaded_index
	sub	sp, sp, #16
	ldr	w0, [sp, #12]
	cmp	w0, #5
	b.hi	1f
	ldr	w1, [sp, #12]
	dispatch bytes, w1
	end	reloaded_index

	begin	overwritten_index	// perhaps by way of x5
	sub	sp, sp, #16
	ldr	w0, [sp, #12]
	cmp	w0, #5
	b.hi	1f
	str	w2, [x5]
	ldr	w1, [sp, #12]
	dispatch bytes, w1
	end	overwritten_index

	begin	hoisted
	adrp	x19, bytes
	add	x19, x19, :lo12:bytes
	adr	x20, 0f
3:	ldrb	w0, [x1], #1
	cmp	w0, #5
	b.hi	3b
	ldrb	w10, [x19, w0, uxtw]
	add	x10, x20, w10, sxtb #2
	br	x10
0:	nop
	nop
	nop
	nop
	nop
	b	3b
	end	hoisted

	begin	spilled_table
	sub	sp, sp, #32
	adrp	x3, bytes
	add	x3, x3, :lo12:bytes
	stp	x2, x3, [sp, #8]
3:	ldrb	w0, [x1], #1
	bl	compare_hi
	cmp	w0, #5
	b.hi	3b
	ldr	x3, [sp, #16]
	ldrb	w10, [x3, w0, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, sxtb #2
	br	x10
0:	nop
	nop
	nop
	nop
	nop
	b	3b
	end	spilled_table

	begin	never_returns		// compare_hi might set x19; it does not return
	adrp	x19, bytes
	add	x19, x19, :lo12:bytes
	cbnz	w1, 3f
	mov	x19, x2
	bl	compare_hi
3:	cmp	w0, #5
	b.hi	1f
	ldrb	w10, [x19, w0, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, sxtb #2
	br	x10
0:	nop
	nop
	nop
	nop
	nop
	nop
	end	never_returns

	begin	halves
	cmp	w0, #2
	b.hi	1f
	adrp	x1, halfwords
	add	x1, x1, :lo12:halfwords
	ldrh	w0, [x1, w0, uxtw #1]
	adr	x1, 0f
	add	x0, x1, w0, sxth #2
	br	x0
0:	nop
	nop
	nop
	end	halves

	begin	words_relative		// of LLVM: to the table
	cmp	x0, #2
	b.hi	1f
	adrp	x1, words
	add	x1, x1, :lo12:words
	ldrsw	x2, [x1, x0, lsl #2]
	add	x1, x1, x2
	br	x1
0:	nop
	nop
	nop
	end	words_relative

	begin	words_by_element	// the element's address is computed first
	cmp	w0, #2
	b.hi	1f
	adrp	x1, words
	add	x1, x1, :lo12:words
	add	x2, x1, w0, uxtw #2
	ldrsw	x2, [x2]
	add	x1, x1, x2
	br	x1
	end	words_by_element

	begin	words_premultiplied
	cmp	x0, #2
	b.hi	1f
	adrp	x1, words
	add	x1, x1, :lo12:words
	lsl	x3, x0, #2
	ldrsw	x2, [x3, x1]
	add	x1, x2, x1
	br	x1
	end	words_premultiplied

	begin	unsigned_shifted	// of LLVM: forward from a label
	cmp	x0, #5
	b.hi	1f
	adrp	x1, bytes
	add	x1, x1, :lo12:bytes
	adr	x2, 0f
	ldrb	w3, [x1, x0]
	add	x2, x2, x3, lsl #2
	br	x2
0:	nop
	nop
	nop
	nop
	nop
	nop
	end	unsigned_shifted

	begin	shifted_before		// the entry is shifted by itself
	cmp	x0, #5
	b.hi	1f
	adrp	x1, bytes
	add	x1, x1, :lo12:bytes
	adr	x2, 0f
	ldrb	w3, [x1, x0]
	lsl	x3, x3, #2
	add	x2, x3, x2
	br	x2
0:	nop
	nop
	nop
	nop
	nop
	nop
	end	shifted_before

	begin	addresses		// of Go
	cmp	x0, #3
	b.hs	1f
	adrp	x27, labels
	add	x27, x27, :lo12:labels
	ldr	x27, [x27, x0, lsl #3]
	br	x27
	.global	label
label:	nop
	nop
	nop
	end	addresses

	begin	addresses_authenticated
	cmp	x0, #3
	b.hs	1f
	adrp	x16, labels
	add	x16, x16, :lo12:labels
	ldr	x17, [x16, x0, lsl #3]
	.inst	0xd71f0a30		// braa x17, x16
	end	addresses_authenticated

	begin	functions		// a tail call: no label of this function
	adrp	x1, labels
	add	x1, x1, :lo12:labels
	ldr	x1, [x1, x0, lsl #3]
	br	x1
	end	functions

	begin	unknown_addresses
	ldr	x1, [x2, x0, lsl #3]
	br	x1
	end	unknown_addresses

	begin	argument
	br	x3
	end	argument

	begin	result
	bl	compare_hi
	br	x0
	end	result

	begin	other_return
	ldr	x5, [x0]
	ret	x5
	end	other_return

	begin	plt
	adrp	x16, labels
	ldr	x17, [x16, :lo12:labels]
	add	x16, x16, :lo12:labels
	br	x17
	end	plt

	begin	veneer
	adrp	x16, compare_hi
	add	x16, x16, :lo12:compare_hi
	br	x16
	end	veneer

	begin	choice
	cmp	w0, #0
	adr	x1, compare_hi
	csel	x1, x1, x2, eq
	br	x1
	end	choice

	begin	guarded			// a pointer mangled by the C library
	ldr	x1, [x0]
	ldr	x2, [x3]
	eor	x1, x1, x2
	br	x1
	end	guarded

	begin	signed
	ldr	x1, [x0]
	.inst	0xdac11001		// autia x1, x0
	br	x1
	end	signed

	begin	into_code		// unrolled code is entered by its length
	adr	x1, 1f
	sub	x1, x1, x0, lsl #2
	br	x1
	end	into_code

	begin	by_index
	adr	x1, 0f
	add	x1, x1, x0, lsl #3
	br	x1
0:	nop
	end	by_index

	begin	product
	mul	x1, x1, x0
	br	x1
	end	product

	begin	two_tables		// one jump for both
	cbz	w1, 3f
	adrp	x9, bytes
	add	x9, x9, :lo12:bytes
	b	4f
3:	adrp	x9, more
	add	x9, x9, :lo12:more
4:	cmp	w0, #5
	b.hi	1f
	ldrb	w10, [x9, w0, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, sxtb #2
	br	x10
0:	nop
	end	two_tables

	begin	unknown_table
	ldrb	w10, [x9, w0, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, sxtb #2
	br	x10
0:	nop
	end	unknown_table

	begin	extended_twice		// the sign is lost on the way
	cmp	w0, #5
	b.hi	1f
	adrp	x9, bytes
	add	x9, x9, :lo12:bytes
	ldrsb	w10, [x9, w0, uxtw]
	adr	x9, 0f
	add	x10, x9, w10, uxtw #2
	br	x10
0:	nop
	end	extended_twice

	.section .rodata
	.global	bytes, more, halfwords, words, labels
bytes:	.byte	0, 1, 2, 3, 4, 5
more:	.byte	5, 4, 3, 2, 1, 0
	.balign	8
halfwords:
	.hword	0, 2, 1
	.balign	8
words:	.word	label - words, label - words + 4, label - words + 8
	.balign	8
labels:	.xword	label, label + 4, label + 8
