# A function that jumps over bytes that would be instructions, but that nothing leads to.
# as -o unreached.o unreached.s && ld -e start --build-id=none -z noseparate-code -o unreached.elf unreached.o
	.text
	.globl	start
	.type	start, @function
start:
	mov	$0x12345678, %eax
	jmp	.Lafter

	xor	%eax, %eax
	xor	%eax, %eax
.Lafter:
	inc	%eax
	ret
	.size	start, . - start
