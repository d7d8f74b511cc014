/* Functions with unwinding rules of every kind that assemblers write. The
   instructions themselves say nothing, so that this serves every architecture. */
	.text
	.globl _start
_start:
	.cfi_startproc
	.space 24
	.cfi_endproc

with_handler:
	.cfi_startproc
	.cfi_personality 0x9b, handler_pointer	/* indirect, relative, 4 bytes */
	.cfi_lsda 0x1b, data
	.space 40
	.cfi_endproc

	.space 16	/* in no function */

signal_frame:
	.cfi_startproc
	.cfi_signal_frame
	.space 12
	.cfi_endproc

with_near_handler:
	.cfi_startproc
	.cfi_personality 0x1b, _start
	.space 300
	.cfi_endproc

	.section .text.unlikely, "ax"
part_of_one:
	.cfi_startproc
	.space 8
	.cfi_endproc

	.data
	.balign 8
handler_pointer:
	.8byte _start
data:
	.8byte 0
