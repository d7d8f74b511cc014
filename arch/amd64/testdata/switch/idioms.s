# Indirect jumps, each in a function of its own, whose name the test has. Tables
# are at the function's name with _table behind it, comparisons and masks at
# _check.

	.macro function name
	.text
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.endm

	.macro done name
	.size \name, . - \name
	.endm

	.macro targets name
1:	nop
2:	nop
3:	nop
4:	ret
	done \name
	.endm

	.macro relative name
	.section .rodata
	.p2align 2
\name\()_table:
	.long 1b - \name\()_table, 2b - \name\()_table, 3b - \name\()_table, 4b - \name\()_table
	.text
	.endm

	.macro addresses name
	.section .rodata
	.p2align 3
\name\()_table:
	.quad 1b, 2b, 3b, 4b
	.text
	.endm

	function absolute
	cmp $3, %edi
absolute_check = . - 3
	ja 4f
	mov %edi, %edi
	jmp *absolute_table(,%rdi,8)
	targets absolute
	addresses absolute

	function loaded
	cmp $4, %rdi
loaded_check = . - 4
	jae 4f
	mov loaded_table(,%rdi,8), %rax
	notrack jmp *%rax
	targets loaded
	addresses loaded

	function go
	cmp $3, %rax
go_check = . - 4
	ja 4f
	lea go_table(%rip), %rcx
	jmp *(%rcx,%rax,8)
	targets go
	addresses go

	function pic
	lea pic_table(%rip), %rdx
	cmpb $3, 4(%rdi)
pic_check = . - 4
	ja 4f
	movzbl 4(%rdi), %eax
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	bnd jmp *%rax
	targets pic
	relative pic

# The store in between may change what was compared.
	function changed
	lea changed_table(%rip), %rdx
	cmpb $3, 4(%rdi)
	ja 4f
	mov %rsi, (%rdx)
	movzbl 4(%rdi), %eax
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
	targets changed
	relative changed

# Clang -O0: the subtraction compares, the index waits on the stack.
	function spilled
	push %rbp
	mov %rsp, %rbp
	mov %edi, %eax
	mov %rax, -16(%rbp)
	sub $3, %eax
spilled_check = . - 3
	ja 4f
	mov -16(%rbp), %rax
	lea spilled_table(%rip), %rcx
	movslq (%rcx,%rax,4), %rax
	add %rcx, %rax
	jmp *%rax
	targets spilled
	relative spilled

# GCC -O0.
	function unoptimized
	push %rbp
	mov %rsp, %rbp
	mov %edi, -4(%rbp)
	cmpl $3, -4(%rbp)
unoptimized_check = . - 4
	ja 4f
	mov -4(%rbp), %eax
	lea 0(,%rax,4), %rdx
	lea unoptimized_table(%rip), %rax
	mov (%rdx,%rax), %eax
	cltq
	lea unoptimized_table(%rip), %rdx
	add %rdx, %rax
	notrack jmp *%rax
	targets unoptimized
	relative unoptimized

# The table's address is set in front of a loop with calls.
	function hoisted
	push %rbx
	push %rbp
	lea hoisted_table(%rip), %rbx
	xor %ebp, %ebp
5:	call absolute
	cmp $3, %eax
hoisted_check = . - 3
	ja 5b
	cltq
	movslq (%rbx,%rax,4), %rax
	add %rbx, %rax
	jmp *%rax
1:	inc %ebp
	jmp 5b
2:	dec %ebp
	jmp 5b
3:	call loaded
	jmp 5b
4:	pop %rbp
	pop %rbx
	ret
	done hoisted
	relative hoisted

# It is kept on the stack there.
	function kept
	sub $40, %rsp
	lea kept_table(%rip), %rax
	mov %rax, 8(%rsp)
5:	call absolute
	cmp $3, %eax
kept_check = . - 3
	ja 5b
	mov 8(%rsp), %rdx
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
1:	call loaded
	jmp 5b
2:	call pic
	jmp 5b
3:	call go
	jmp 5b
4:	add $40, %rsp
	ret
	done kept
	relative kept

# The block of the jump is entered by a branch only.
	function entered
	cmp $3, %edi
entered_check = . - 3
	jbe 5f
	ret
	nop
5:	mov %edi, %eax
	movslq entered_table(,%rax,4), %rax
	add $entered_table, %rax
	jmp *%rax
	targets entered
	relative entered

# Two comparisons lead to the jump: the larger table counts.
	function twice
	test %esi, %esi
	je 6f
	cmp $1, %edi
	jbe 5f
	ret
6:	cmp $3, %edi
twice_check = . - 3
	ja 4f
5:	mov %edi, %eax
	jmp *twice_table(,%rax,8)
	targets twice
	addresses twice

# On one of two ways there is none.
	function unchecked
	test %esi, %esi
	je 5f
	cmp $1, %edi
	ja 4f
5:	mov %edi, %eax
	jmp *unchecked_table(,%rax,8)
	targets unchecked
	addresses unchecked

# The comparison is of another value of the register.
	function overwritten
	cmp $1, %edi
	ja 4f
	mov (%rsi), %edi
	jmp *overwritten_table(,%rdi,8)
	targets overwritten
	addresses overwritten

# Only the low byte is compared.
	function narrow
	cmp $1, %dil
	ja 4f
	mov %edi, %eax
	jmp *narrow_table(,%rax,8)
	targets narrow
	addresses narrow

	function extended
	lea -97(%rdi), %eax
	cmp $3, %al
extended_check = . - 2
	ja 4f
	movzbl %al, %eax
	jmp *extended_table(,%rax,8)
	targets extended
	addresses extended

# A signed comparison says nothing of a number that may be negative.
	function signed
	cmp $1, %edi
	jg 4f
	movslq %edi, %rdi
	jmp *signed_table(,%rdi,8)
	targets signed
	addresses signed

	function unsigned
	movzbl (%rdi), %eax
	cmp $3, %eax
unsigned_check = . - 3
	jg 4f
	jmp *unsigned_table(,%rax,8)
	targets unsigned
	addresses unsigned

# The table starts at 97 of the value that is the index.
	function biased
	lea -97(%rdi), %eax
	cmp $3, %eax
biased_check = . - 3
	ja 4f
	mov %edi, %edi
	jmp *biased_table-97*8(,%rdi,8)
	targets biased
	addresses biased

	function masked
	and $3, %edi
masked_check = . - 3
	mov masked_table(,%rdi,8), %rax
	jmp *%rax
	targets masked
	addresses masked

# The table of bytes in front has the index into the other one.
	function twolevel
	cmp $7, %edi
	ja 4f
	movzbl twolevel_bytes(%rdi), %eax
	jmp *twolevel_table(,%rax,8)
	targets twolevel
	addresses twolevel
	.section .rodata
twolevel_bytes:
	.byte 0, 1, 1, 2, 2, 3, 3, 0
	.text

# Entries are relative to code, and one way does not use the table.
	function either
	lea 1f(%rip), %rdx
	lea 3f(%rip), %rax
	cmp $3, %edi
either_check = . - 3
	ja 5f
	mov %edi, %ecx
	lea either_table(%rip), %rsi
	movslq (%rsi,%rcx,4), %rax
	add %rdx, %rax
5:	jmp *%rax
	targets either
	.set either_base, 1b
	.section .rodata
	.p2align 2
either_table:
	.long 0, 2b - 1b, 3b - 1b, 4b - 1b
	.text

# Two tables, one jump.
	function different
	lea different_table(%rip), %rdx
	cmp $1, %edi
	jbe 5f
	cmp $3, %edi
	ja 4f
	mov %edi, %eax
	movslq (%rdx,%rax,4), %rax
	jmp 6f
5:	mov %edi, %eax
	movslq 4(%rdx,%rax,4), %rax
6:	add %rdx, %rax
	jmp *%rax
	targets different
	relative different

# Two tables, one load.
	function parted
	cmp $3, %edi
	ja 4f
	lea parted_table(%rip), %rdx
	test %esi, %esi
	je 5f
	lea parted_table+8(%rip), %rdx
5:	mov %edi, %eax
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
	targets parted
	relative parted

# The same table, wherever execution comes from.
	function joined
	cmp $3, %edi
	ja 4f
	lea joined_table(%rip), %rdx
	test %esi, %esi
	je 5f
	call absolute
	mov %eax, %edi
	and $3, %edi
joined_check = . - 3
	lea joined_table(%rip), %rdx
5:	mov %edi, %eax
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
	targets joined
	relative joined

# Two tables of whole addresses.
	function pointers
	cmp $1, %edi
	jbe 5f
	mov %edi, %eax
	mov pointers_table(,%rax,8), %rax
	jmp 6f
5:	mov %edi, %eax
	mov pointers_table+8(,%rax,8), %rax
6:	jmp *%rax
	targets pointers
	addresses pointers

	function code
	lea 1f(%rip), %rax
	lea (%rax,%rdi,4), %rax
	jmp *%rax
	targets code

	function arithmetic
	mov (%rdi), %rax
	xor %rsi, %rax
	jmp *%rax
	done arithmetic

	function unknown
	movslq (%rsi,%rdi,4), %rax
	add %rsi, %rax
	jmp *%rax
	done unknown

	function argument
	jmp *%rdi
	done argument

	function method
	mov (%rdi), %rax
	jmp *16(%rax)
	done method

	function stub
	endbr64
	bnd jmp *stub_got(%rip)
	done stub
	.data
stub_got:
	.quad absolute
	.text

	function result
	push %rbx
	call absolute
	mov %rax, %rdx
	pop %rbx
	jmp *%rdx
	done result

	function chosen
	lea absolute(%rip), %rax
	test %edi, %edi
	cmove (%rsi), %rax
	jmp *%rax
	done chosen

	function guarded
	mov 56(%rdi), %rdx
	ror $17, %rdx
	xor %fs:48, %rdx
	jmp *%rdx
	done guarded

	function elements
	jmp *(%rdi,%rsi,8)
	done elements

	function functions
	cmp $3, %edi
functions_check = . - 3
	ja 4f
	mov %edi, %edi
	jmp *functions_table(,%rdi,8)
4:	ret
	done functions
	.section .rodata
	.p2align 3
functions_table:
	.quad absolute, loaded, go, pic
	.text

	function operations
	jmp *operations_table(,%rdi,8)
	done operations
	.section .rodata
	.p2align 3
operations_table:
	.quad absolute, loaded, go, pic
	.text

	function narrowed
	data16 jmp *%rax
	done narrowed

# On one way the register is a pointer, on the other it is computed.
	function mixed
	mov (%rdi), %rax
	test %esi, %esi
	je 5f
	add %rsi, %rax
5:	jmp *%rax
	done mixed

# The call never returns: nothing would execute the padding after it.
	function spawned
	lea spawned_table(%rip), %r13
8:	cmp $3, %edi
spawned_check = . - 3
	ja 5f
	mov %edi, %eax
	movslq (%r13,%rax,4), %rax
	add %r13, %rax
	jmp *%rax
5:	lea absolute(%rip), %r13
	call absolute
	nopl (%rax)
1:	inc %edi
	jmp 8b
2:	nop
3:	nop
4:	ret
	done spawned
	relative spawned

# The index comes from a table of its own and is extended in two ways.
	function rules
	lea rules_lengths(%rip), %rax
	movswl (%rax,%rdi,2), %r12d
	mov %r12d, %eax
	sub $8, %eax
	cmp $3, %ax
rules_check = . - 4
	ja 4f
	lea rules_table(%rip), %rdx
	movzwl %ax, %eax
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
	targets rules
	relative rules
	.section .rodata
rules_lengths:
	.short 8, 9, 10, 11
	.text

# One cell of memory by two registers.
	function cell
	mov %rsi, %r12
	push %rbx
	cmpl $3, (%rsi)
cell_check = . - 3
	ja 4f
	mov (%r12), %eax
	jmp *cell_table(,%rax,8)
	targets cell
	addresses cell

# The register is copied between the comparison and the load.
	function renamed
	cmpb $3, (%rax)
renamed_check = . - 3
	mov %rax, %rsi
	ja 4f
	movzbl (%rsi), %eax
	jmp *renamed_table(,%rax,8)
	targets renamed
	addresses renamed

# As GCC without optimization has it.
	function short
	movzwl 100(%rdi), %eax
	cwtl
	cmp $3, %eax
short_check = . - 3
	ja 4f
	mov %eax, %eax
	lea 0(,%rax,4), %rdx
	lea short_table(%rip), %rax
	mov (%rdx,%rax), %eax
	cltq
	lea short_table(%rip), %rdx
	add %rdx, %rax
	jmp *%rax
	targets short
	relative short

# Two loads from one table.
	function bytes
	movzbl (%rdi), %eax
	mov bytes_table(,%rax,8), %rax
	test %esi, %esi
	je 5f
bytes_check:
	movzbl 1(%rdi), %edx
	mov bytes_table(,%rdx,8), %rax
5:	jmp *%rax
	targets bytes
	addresses bytes

# Only the jump itself leads into a loop.
	function scanned
	movzbl (%rdi), %eax
8:	cmp $3, %al
scanned_check = . - 2
	ja 4f
	jmp *scanned_table(,%rax,8)
2:	cmp $10, %al
	je 8b
1:	movzbl 1(%rdi), %eax
	add $1, %rdi
	test %al, %al
	jne 2b
	jmp 8b
3:	nop
4:	ret
	done scanned
	addresses scanned

# The index is copied before a loop, and its other copy compared in it.
	function looped
	mov %ebp, %edi
	lea looped_table(%rip), %rsi
8:	cmp $3, %ebp
looped_check = . - 3
	ja 4f
	movslq (%rsi,%rdi,4), %rcx
	add %rsi, %rcx
	jmp *%rcx
1:	test %eax, %eax
	je 2f
	test %ecx, %ecx
	je 3f
	test %edx, %edx
	je 5f
	inc %eax
5:	inc %eax
3:	inc %eax
2:	inc %eax
	jne 8b
4:	ret
	done looped
	relative looped

# A loop in which the compared register is another than the index: only the jump
# itself leads there.
	function unrelated
	jmp *%r8
8:	dec %ecx
	jne 8b
	dec %edx
	jne 8b
	cmp $3, %edi
	ja 4f
	jmp *unrelated_table(,%rsi,8)
	targets unrelated
	addresses unrelated

	.section .note.GNU-stack, "", @progbits
