# One function for each rule of the search for an indirect jump's targets. A
# comparison or mask that bounds a table is at NAME.check; the table is at
# NAME.table, and its entries are relative to it.

	.machine power10
	.text

	.macro function name
	.p2align 4
	.type \name, @function
\name:
	.endm

	.macro end name
	.size \name, . - \name
	.endm

	.macro address reg, label
	bcl 20, 31, .Lat\@
.Lat\@:
	mflr \reg
	addi \reg, \reg, \label - .Lat\@
	.endm

# Loads, adds and jumps, the table's address being in r10, the index in r3.
	.macro dispatch
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	.endm

	.macro table name
\name\().table:
	.long \name\().a - \name\().table, \name\().b - \name\().table
	.long \name\().c - \name\().table, \name\().d - \name\().table
\name\().a:
	addi 4, 4, 1
\name\().b:
	addi 4, 4, 2
\name\().c:
	addi 4, 4, 3
\name\().d:
	addi 4, 4, 4
\name\().default:
	blr
	end \name
	.endm

	function compare
	address 10, compare.table
compare.check:
	cmplwi 3, 3
	bgt compare.default
	dispatch
	table compare

	function compare_ge
	address 10, compare_ge.table
compare_ge.check:
	cmpldi cr5, 3, 4
	bge cr5, compare_ge.default
	dispatch
	table compare_ge

	function compare_signed
	address 10, compare_signed.table
compare_signed.check:
	cmpwi 3, 3
	bgt compare_signed.default
	dispatch
	table compare_signed

	function compare_register
	address 10, compare_register.table
	li 8, 4
compare_register.check:
	cmpld 3, 8
	bge compare_register.default
	dispatch
	table compare_register

	function compare_twice
	address 10, compare_twice.table
compare_twice.check:
	cmplwi 3, 4
	bgt compare_twice.default
	beq compare_twice.default
	dispatch
	table compare_twice

	function return_if
	address 10, return_if.table
return_if.check:
	cmplwi 3, 3
	bgtlr
	dispatch
	table return_if

	function branch_to_switch
	address 10, branch_to_switch.table
branch_to_switch.check:
	cmplwi cr7, 3, 4
	blt cr7, 1f
	li 3, 0
	blr
1:	dispatch
	table branch_to_switch

	function trap
	address 10, trap.table
trap.check:
	twlgti 3, 3
	dispatch
	table trap

	function trap_ge
	address 10, trap_ge.table
trap_ge.check:
	twlgei 3, 4
	dispatch
	table trap_ge

	function masked
	address 10, masked.table
masked.check:
	rldic 9, 3, 2, 60
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table masked

	function field
	address 10, field.table
field.check:
	rlwinm 9, 3, 30, 28, 29
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table field

	function masked_and_compared
	address 10, masked_and_compared.table
	clrlwi 8, 3, 24
masked_and_compared.check:
	cmplwi 8, 3
	bgt masked_and_compared.default
	rldic 9, 3, 2, 54
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table masked_and_compared

	function unmasked
	address 10, unmasked.table
	clrlwi 8, 3, 24
	cmplwi 8, 3
	bgt unmasked.default
	dispatch
	table unmasked

	function subtracted
	address 10, subtracted.table
	addi 3, 3, -10
subtracted.check:
	cmplwi 3, 3
	bgt subtracted.default
	dispatch
	table subtracted

	function subtracted_later
	address 10, subtracted_later.table
subtracted_later.check:
	cmplwi 3, 13
	bgt subtracted_later.default
	addi 3, 3, -10
	dispatch
	table subtracted_later

	function changed
	address 10, changed.table
	cmplwi 3, 3
	bgt changed.default
	xor 3, 3, 5
	dispatch
	table changed

	function other_register
	address 10, other_register.table
	cmplwi 4, 3
	bgt other_register.default
	dispatch
	table other_register

	function other_condition
	address 10, other_condition.table
	cmplwi 3, 3
	cmpwi 5, 0
	bgt other_condition.default
	dispatch
	table other_condition

	function recorded_condition
	address 10, recorded_condition.table
	cmplwi 3, 3
	and. 5, 5, 6
	bgt recorded_condition.default
	dispatch
	table recorded_condition

	function lower_bound
	address 10, lower_bound.table
	cmplwi 3, 3
	blt lower_bound.default
	dispatch
	table lower_bound

	function counted
	address 10, counted.table
	cmplwi 3, 3
	bdnzt gt, counted.default
	dispatch
	table counted

	function kept_over_call
	mr 30, 3
	address 31, kept_over_call.table
kept_over_call.check:
	cmplwi cr3, 30, 3
	bl compare
	bgt cr3, kept_over_call.default
	mr 3, 30
	mr 10, 31
	dispatch
	table kept_over_call

	function lost_in_call
	mr 30, 3
	address 31, lost_in_call.table
	cmplwi cr7, 30, 3
	bl compare
	bgt cr7, lost_in_call.default
	mr 3, 30
	mr 10, 31
	dispatch
	table lost_in_call

	function loaded_twice
	address 10, loaded_twice.table
	lbz 8, 5(4)
loaded_twice.check:
	cmplwi 8, 3
	bgt loaded_twice.default
	lbz 3, 5(4)
	dispatch
	table loaded_twice

	function stored_between
	address 10, stored_between.table
	lbz 8, 5(4)
	cmplwi 8, 3
	bgt stored_between.default
	stb 6, 0(5)
	lbz 3, 5(4)
	dispatch
	table stored_between

	function updated
	address 10, updated.table
	lbzu 8, 1(4)
updated.check:
	cmplwi 8, 3
	bgt updated.default
	lbz 3, 0(4)
	dispatch
	table updated

	function spilled_index
	address 10, spilled_index.table
	stw 3, -32(1)
	lwz 8, -32(1)
spilled_index.check:
	cmplwi 8, 3
	bgt spilled_index.default
	lwz 3, -32(1)
	dispatch
	table spilled_index

	function two_checks
	address 10, two_checks.table
	cmpwi 4, 0
	bne 1f
	cmplwi 3, 2
	bgt two_checks.default
	b 2f
1:
two_checks.check:
	cmplwi 3, 3
	bgt two_checks.default
2:	dispatch
	table two_checks

	function one_check
	address 10, one_check.table
	cmpwi 4, 0
	bne 1f
	cmplwi 3, 2
	bgt one_check.default
1:	dispatch
	table one_check

	function behind_check
	address 10, behind_check.table
	address 8, 1f
	sldi 9, 4, 2
	lwax 9, 8, 9
	add 9, 9, 8
	mtctr 9
	bctr
1:	.long 2f - 1b, 3f - 1b
2:	cmplwi 3, 1
	bgtlr
3:	dispatch
	table behind_check

	function hoisted
	address 31, hoisted.table
	mr 30, 4
1:	lbz 3, 0(30)
	addi 30, 30, 1
	cmpwi 3, 9
	beq 1b
	bl compare
	cmpwi 3, 8
	beq 1b
hoisted.check:
	cmplwi 3, 3
	bgt hoisted.default
	sldi 9, 3, 2
	lwax 9, 31, 9
	add 9, 9, 31
	mtctr 9
	bctr
	table hoisted

	function spilled_address
	address 10, spilled_address.table
	std 10, -48(1)
	li 10, 7
1:	addi 10, 10, -1
	cmpwi 10, 0
	bne 1b
	ld 10, -48(1)
spilled_address.check:
	cmplwi 3, 3
	bgt spilled_address.default
	dispatch
	table spilled_address

	function running
	address 10, running.table
1:	addi 10, 10, 4
	cmpwi 3, 9
	beq 1b
	dispatch
	table running

	function one_of_two
	address 10, one_of_two.table
	cmpwi 4, 0
	beq 1f
	addi 10, 10, 8
1:	dispatch
	table one_of_two

	function shared
	cmpwi 4, 0
	beq 1f
	address 10, shared.table
	lwz 9, 0(10)
	address 8, shared.table
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 8
	mtctr 9
	b 2f
1:	address 10, shared.second
	address 8, shared.table
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 8
	mtctr 9
2:	bctr
shared.second = shared.table + 8
	table shared

	function built_constant
	address 10, built_constant.table
	lis 8, 0
	ori 8, 8, 4
	oris 8, 8, 0
built_constant.check:
	cmpld 3, 8
	bge built_constant.default
	dispatch
	table built_constant

	function extended_index
	address 10, extended_index.table
extended_index.check:
	cmplwi 3, 3
	bgt extended_index.default
	extsw 3, 3
	sldi 9, 3, 2
	extsw 9, 9
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	mfctr 8
	mtctr 8
	bctr
	table extended_index

	function top_bits
	address 10, top_bits.table
top_bits.check:
	srdi 3, 3, 62
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table top_bits

	function offset_table
	address 10, offset_table.table - 8
	sldi 9, 3, 2
	add 9, 9, 10
	lwa 9, 8(9)
	address 8, offset_table.table - 16
	add 9, 9, 8
	addi 9, 9, 16
	mtctr 9
	bctr
	table offset_table

	function sum_of_indices
	address 10, sum_of_indices.table
	sldi 9, 3, 2
	sldi 8, 4, 3
	add 7, 10, 9
	add 7, 8, 7
	lwa 9, 0(7)
	add 9, 9, 10
	mtctr 9
	bctr
	table sum_of_indices

	function table_or_pointer
	address 10, table_or_pointer.table
	ld 12, 0(4)
	mtctr 12
	cmpwi 5, 0
	beq 1f
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
1:	bctr
	table table_or_pointer

	function two_levels
	address 10, two_levels.table
	lbzx 9, 10, 3
	sldi 9, 9, 2
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table two_levels

# The index of the second level is compared before it is scaled.
	function two_levels_compared
	address 10, two_levels_compared.table
	lbzx 9, 10, 3
	clrlwi 8, 9, 24
two_levels_compared.check:
	cmplwi 8, 3
	bgt two_levels_compared.default
	rldic 9, 9, 2, 54
	lwax 9, 10, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table two_levels_compared

# GCC looks at single values before it uses the table.
	function below_too
	address 10, below_too.table
below_too.check:
	cmplwi 3, 3
	bgt below_too.default
	cmplwi cr7, 3, 1
	ble cr7, below_too.default
	bgt below_too.default
	dispatch
	table below_too

	function used_before
	li 31, 5
	cmpwi 3, 9
	beq 1f
	address 31, used_before.table
1:	cmpwi 4, 8
	beq 2f
	sldi 9, 3, 2
	lwax 9, 31, 9
	add 9, 9, 31
	mtctr 9
	bctr
2:	mr 3, 31
	b compare
	table used_before

	function loaded_zero_extended
	address 10, loaded_zero_extended.table
loaded_zero_extended.check:
	cmplwi 3, 3
	bgt loaded_zero_extended.default
	sldi 9, 3, 2
	lwzx 9, 10, 9
	extsw 9, 9
	add 9, 9, 10
	mtctr 9
	bctr
	table loaded_zero_extended

	function through_tar
	address 10, through_tar.table
through_tar.check:
	cmplwi 3, 3
	bgt through_tar.default
	sldi 9, 3, 2
	lwax 9, 10, 9
	add 9, 9, 10
	mtspr 815, 9
	btar
	table through_tar

	function pc_relative
	pla 10, pc_relative.table@pcrel
pc_relative.check:
	cmplwi 3, 3
	bgt pc_relative.default
	dispatch
	table pc_relative

	function argument
	mtctr 3
	bctr
	end argument

	function descriptor
	ld 0, 0(3)
	ld 2, 8(3)
	mtctr 0
	bctr
	end descriptor

	function result
	bl compare
	mtctr 3
	bctr
	end result

	function conditional
	cmpdi 3, 0
	mtctr 4
	bnectr
	blr
	end conditional

	function either_pointer
	cmpdi 3, 0
	ld 12, 8(4)
	bne 1f
	ld 12, 16(4)
1:	mtctr 12
	bctr
	end either_pointer

	function selected
	cmpdi 3, 0
	isel 12, 4, 5, 2
	mtctr 12
	bctr
	end selected

	function wrapped
	rlwinm 3, 3, 8, 30, 1
	mtctr 3
	bctr
	end wrapped

	function sum
	add 3, 3, 4
	mtctr 3
	bctr
	end sum

	function entry_alone
	address 10, compare.table
	sldi 9, 3, 2
	lwax 9, 10, 9
	mtctr 9
	bctr
	end entry_alone

	function own_address
	address 10, 1f
	mtctr 10
	bctr
1:	blr
	end own_address

# Blocks that only indirect jumps lead to hand the address of a label round, as in the
# GNU C library's printf.
	function handed_round
	ld 8, .Lhanded_round@toc(2)
	mtctr 3
	bctr
	.irp slot, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96
	std 8, \slot(1)
	bl compare
	ld 8, \slot(1)
	mtctr 3
	bctr
	.endr
	cmplwi 4, 90
	mtctr 8
	bgt 2f
	blr
1:	blr
2:	bctr
	end handed_round
	.section .toc, "aw"
	.p2align 3
.Lhanded_round:
	.quad 1b
	.text

	function counter
	mtctr 3
1:	bdnz 1b
	bctr
	end counter

	.section .note.GNU-stack,"",@progbits
