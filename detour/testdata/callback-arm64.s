// Callbacks for the tests, built by build.sh; see callback-amd64.s.
	.text
check:
	ldr	x9, =0x1122334455667788
	cmp	x0, x9
	b.ne	wrong
	mov	x9, sp
	tst	x9, #15
	b.ne	wrong
	cmp	x1, x9
	b.lo	wrong
	ldr	x0, =0xbad0bad0bad0bad0
	.irp	n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18
	mov	x\n, x0
	.endr
	stp	x29, x30, [sp, #-32]!
	mov	x29, sp
	cmn	x0, x0
	ldp	x29, x30, [sp], #32
	ret
wrong:	brk	#1
	.ltorg

	.org	0x100
	mov	w9, #0xc0de0000
	mov	x10, #0
1:	add	x11, x9, x10
	str	x11, [x1, x10]
	add	x10, x10, #8
	cmp	x10, #248
	b.ne	1b
	add	x10, x1, x10
	mov	x11, #-1
	stp	x11, x11, [x10]		// sp, pc
	mov	w11, #0xa0000000
	str	x11, [x10, #16]		// pstate
	ret
