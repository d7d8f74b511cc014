# Callbacks for the tests, built by build.sh.
#
# check traps unless it is called as callback(probe, regs) has to be, and
# clobbers all that a function may.
	.text
check:
	movabs	$0x1122334455667788, %rax
	cmp	%rax, %rdi
	jne	wrong
	lea	8(%rsp), %rax
	test	$15, %al
	jne	wrong
	cmp	%rax, %rsi		# the frame is above the return address
	jb	wrong
	pushf
	pop	%rax
	test	$0x400, %eax		# direction
	jne	wrong
	movabs	$0xbad0bad0bad0bad0, %rax
	mov	%rax, %rcx
	mov	%rax, %rdx
	mov	%rax, %rsi
	mov	%rax, %rdi
	mov	%rax, %r8
	mov	%rax, %r9
	mov	%rax, %r10
	mov	%rax, %r11
	push	%rax
	pop	%rax
	add	%rax, %rax
	ret
wrong:	int3

# change writes 0xc0de0000 and its offset to every field of a general register,
# flags that are all set, and fields that count for nothing.
	.org	0x100
	mov	$0xc0de0000, %eax
	lea	120(%rsi), %rcx
1:	mov	%rax, (%rsi)
	add	$8, %rax
	add	$8, %rsi
	cmp	%rcx, %rsi
	jne	1b
	movq	$-1, 8(%rsi)		# rip
	movq	$0xed7, 24(%rsi)	# eflags
	movq	$-1, 32(%rsi)		# rsp
	ret
