# Two builds of a program; AFTER is defined for the second.
.include "func.inc"
	.text
	.globl main
	func main
	bti c
	bl same
	adr x1, table
	ret
	end main
	func same
	mov w0, #1
	ret
	end same
	.ifdef AFTER
	func fresh
	mov x19, xzr
	add x19, x19, #1
	ret
	end fresh
	.else
	func gone
	dmb ish
	ret
	end gone
	.endif
	func moved
	ldr w1, limit
	cmp w0, w1
	b.ge 1f
	bl same
1:	ret
	end moved
	func changed
	.ifdef AFTER
	mov w0, #0x2222
	.else
	mov w0, #0x1111
	.endif
	cbz w1, 2f
	.ifdef AFTER
	add x2, x2, #1
	.else
	lsl x3, x3, #3
	.endif
	bl same
2:	ret
	end changed
	func answers
	ldxr w0, [x1]
	.ifndef AFTER
	stxr w2, w0, [x1]
	.endif
	add w0, w0, #1
	.ifdef AFTER
	stxr w2, w0, [x1]
	.endif
	ret
	end answers
	.ifdef AFTER
	func helper.constprop.1
	.else
	func helper.constprop.0
	.endif
	rev w0, w0
	ret
	.ifdef AFTER
	end helper.constprop.1
	func split
	.else
	end helper.constprop.0
	func split.isra.0
	.endif
	mvn w0, w0
	ret
	.ifdef AFTER
	end split
	func split.cold
	.else
	end split.isra.0
	func split.isra.0.cold
	.endif
	udf #0
	.ifdef AFTER
	end split.cold
	.else
	end split.isra.0.cold
	.endif
	.ifdef AFTER
	.quad 0, 0, 0
	.endif
	.type limit, %object
limit:	.word 7
	.size limit, 4
	.type table, %object
table:	.quad 1
	.size table, 8
