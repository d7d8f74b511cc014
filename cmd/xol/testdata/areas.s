# Parts of a kernel's text where the kernel lets nobody probe: entry code, the preamble
# that control-flow integrity puts before a function, and a function after the end of
# the text.

	.text
	.globl	_text, _stext
_text:
_stext:
	.skip	16, 0x90

	.globl	__entry_text_start, entry, __entry_text_end
__entry_text_start:
	.type	entry, @function
entry:
	swapgs
	ret
	.size	entry, . - entry
__entry_text_end:
	.p2align 4, 0xcc

	.globl	__cfi_vfs_read
	.type	__cfi_vfs_read, @function
__cfi_vfs_read:
	mov	$0x12345678, %eax
	.skip	11, 0x90
	.size	__cfi_vfs_read, . - __cfi_vfs_read

	.globl	vfs_read
	.type	vfs_read, @function
vfs_read:
	endbr64
	xor	%eax, %eax
	ret
	.size	vfs_read, . - vfs_read

	.globl	_etext
_etext:

	.section .text.late, "ax"
	.globl	late
	.type	late, @function
late:
	xor	%eax, %eax
	ret
	.size	late, . - late

	.section .init.text, "ax"
	.globl	_sinittext, start_kernel, _einittext
	.type	start_kernel, @function
_sinittext:
start_kernel:
	xor	%eax, %eax
	ret
	.size	start_kernel, . - start_kernel
_einittext:

	.section __param, "a"
	.quad	0
