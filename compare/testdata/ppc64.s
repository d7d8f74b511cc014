# Two builds of a program; AFTER is defined for the second.
	.abiversion 2
.include "func.inc"
	.text
	.globl main
	func main
	mflr %r0
	bl same
	addpcis %r4, 1
	blr
	end main
	func same
	li %r3, 1
	blr
	end same
	.ifdef AFTER
	func fresh
	li %r31, 0
	addi %r31, %r31, 1
	blr
	end fresh
	.else
	func gone
	sync
	blr
	end gone
	.endif
	func moved
	lwz %r5, 8(%r4)
	cmpw %r3, %r5
	bge 1f
	bl same
1:	blr
	end moved
	func changed
	.ifdef AFTER
	li %r3, 0x2222
	.else
	li %r3, 0x1111
	.endif
	cmpwi %r4, 0
	beq 2f
	.ifdef AFTER
	addi %r5, %r5, 1
	.else
	sldi %r6, %r6, 3
	.endif
	bl same
2:	blr
	end changed
	func answers
	lwarx %r3, 0, %r4
	.ifndef AFTER
	stwcx. %r3, 0, %r4
	.endif
	add %r3, %r3, %r5
	.ifdef AFTER
	stwcx. %r3, 0, %r4
	.endif
	blr
	end answers
	.ifdef AFTER
	func helper.constprop.1
	.else
	func helper.constprop.0
	.endif
	cntlzw %r3, %r3
	blr
	.ifdef AFTER
	end helper.constprop.1
	func split
	.else
	end helper.constprop.0
	func split.isra.0
	.endif
	not %r3, %r3
	blr
	.ifdef AFTER
	end split
	func split.cold
	.else
	end split.isra.0
	func split.isra.0.cold
	.endif
	trap
	.ifdef AFTER
	end split.cold
	.else
	end split.isra.0.cold
	.endif
