# Two builds of a program; AFTER is defined for the second.
.include "func.inc"
	.text
	.globl main
	func main
	endbr64
	call same
	lea table(%rip), %rsi
	ret
	end main
	func same
	mov $1, %eax
	ret
	end same
	.ifdef AFTER
	func fresh
	xor %ebx, %ebx
	inc %rbx
	ret
	end fresh
	.else
	func gone
	cpuid
	ret
	end gone
	.endif
	func moved
	push %rbx
	cmp limit(%rip), %edi
	jge 1f
	call same
1:	pop %rbx
	ret
	end moved
	func changed
	.ifdef AFTER
	mov $0x22222222, %eax
	.else
	mov $0x11111111, %eax
	.endif
	test %edi, %edi
	je 2f
	.ifdef AFTER
	inc %rsi
	.else
	shl $3, %rdx
	.endif
	call same
2:	ret
	end changed
	func answers
	add %edi, %eax
	add %esi, %eax
	add %edx, %eax
	add %ecx, %eax
	.ifdef AFTER
	js answers + 2
	.endif
	ret
	end answers
	.ifdef AFTER
	func helper.constprop.1
	.else
	func helper.constprop.0
	.endif
	bswap %eax
	ret
	.ifdef AFTER
	end helper.constprop.1
	func split
	.else
	end helper.constprop.0
	func split.isra.0
	.endif
	not %eax
	ret
	.ifdef AFTER
	end split
	func split.cold
	.else
	end split.isra.0
	func split.isra.0.cold
	.endif
	ud2
	.ifdef AFTER
	end split.cold
	.else
	end split.isra.0.cold
	.endif
	.data
	.ifdef AFTER
	.quad 0, 0, 0
	.endif
limit:	.long 7
table:	.quad 1
