# A module of a Linux kernel.

	.abiversion 2
	.section .modinfo, "a"
	.asciz	"license=GPL"

	.text
	.type	plain, @function
plain:
	li	%r3, 7			# 0
	beq	plain			# 4
	blr				# 8
	.size	plain, . - plain
