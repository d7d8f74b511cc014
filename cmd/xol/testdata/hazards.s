# Instructions that uprobes of Linux on x86-64 accept and then execute wrongly.
	.text
	.globl main
	.type main, @function
main:	call clears
	ret
	.size main, . - main
	.type clears, @function
clears:	vzeroupper
	vzeroupper
	ret
	.size clears, . - clears
	.type cleared, @function
cleared:
	nop
	vzeroupper
	ret
	.size cleared, . - cleared
	.type calls, @function
calls:	mov $39, %eax
	syscall
	ret
	.size calls, . - calls
