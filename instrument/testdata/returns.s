# Functions whose calls end in several ways.
# as -o returns.o returns.s && ld -pie --no-dynamic-linker -e start --build-id=none -z noseparate-code -o returns.elf returns.o
	.macro	function name
	.balign	16, 0xcc
	.type	\name, @function
\name:
	.endm
	.macro	ends name
	.size	\name, . - \name
	.endm

	.text
	.globl	start
	function start
	call	twice
	call	parted
	call	tail
	call	back
	call	aside
	call	both
	call	on_condition
	call	guarded
	call	by_pointer
	call	runs_on
	call	dies
	ud2
	ends	start

	function twice
	test	%edi, %edi
	je	1f
	ret
1:	inc	%edi
	ret
	ends	twice

# A part that returns, one that comes back, and one of another function of that name.
	function parted
	test	%edi, %edi
	je	parted.cold
	js	parted.cold.1
.Lon:	ret
	ends	parted
	function parted.cold
	xor	%eax, %eax
	ret
	ends	parted.cold
	function parted.cold.1
	neg	%edi
	jmp	.Lon
	ends	parted.cold.1
	function parted.cold.2
	ret
	ends	parted.cold.2

	function tail
	test	%edi, %edi
	je	1f
	jmp	twice
1:	jmp	*%rax
	ends	tail

# Its part has a name of its own, and comes back.
	function back
	test	%edi, %edi
	je	elsewhere
.Lback:	ret
	ends	back
	function elsewhere
	inc	%edi
	jmp	.Lback
	ends	elsewhere

# It always goes by such a part.
	function aside
	jmp	apart
.Laside:	ret
	ends	aside
	function apart
	inc	%edi
	jmp	.Laside
	ends	apart

# Its part has a name of its own, and comes back or returns.
	function both
	test	%edi, %edi
	je	either
.Lboth:	ret
	ends	both
	function either
	inc	%edi
	js	.Lboth
	ret
	ends	either

	function on_condition
	test	%edi, %edi
	je	twice
	ret
	ends	on_condition

# What it jumps to does not return.
	function guarded
	test	%edi, %edi
	je	dies
	ret
	ends	guarded

	function by_pointer
	jmp	*(%rdi,%rsi,8)
	ends	by_pointer

	function runs_on
	inc	%edi
	ends	runs_on
	.type	next, @function
next:
	ret
	ends	next

# What it calls does not return; a NOP is after that.
	function dies
	call	stops
	nop
	ends	dies
	.type	stops, @function
stops:
	hlt
	jmp	stops
	ends	stops
