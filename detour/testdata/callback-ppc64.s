# Callbacks for the tests, built by build.sh; see callback-amd64.s. The words
# are those of both byte orders. r2 must be the TOC that the test gives.
	.text
check:
	lis	0, 0x1122
	ori	0, 0, 0x3344
	sldi	0, 0, 32
	oris	0, 0, 0x5566
	ori	0, 0, 0x7788
	cmpd	3, 0
	bne	wrong
	lis	0, 0x0123
	ori	0, 0, 0x4567
	sldi	0, 0, 32
	oris	0, 0, 0x89ab
	ori	0, 0, 0xcdef
	cmpd	2, 0
	bne	wrong
	mflr	5
	bcl	20, 31, 1f
1:	mflr	6
	mtlr	5
	addi	6, 6, check-1b
	cmpd	6, 12			# r12 is the function's own address
	bne	wrong
	andi.	0, 1, 15
	bne	wrong
	ld	6, 0(1)			# the back chain leads up
	cmpld	6, 1
	ble	wrong
	cmpld	4, 1
	ble	wrong
	std	0, 8(1)			# what belongs to a called function
	std	0, 16(1)
	std	0, 24(1)
	.irp	n, 48,56,64,72,80,88,96,104
	std	0, \n(1)
	.endr
	stdu	1, -112(1)
	addi	1, 1, 112
	lis	0, 0x7ad0
	.irp	n, 2,3,4,5,6,7,8,9,10,11,12
	mr	\n, 0
	.endr
	li	0, -1
	mtctr	0
	mtxer	0
	mtcrf	0xff, 0
	blr
wrong:	trap

	.org	0x100
	lis	5, 0x40de
	rldicl	5, 5, 0, 32
	addis	5, 5, 0x4000
	addis	5, 5, 0x4000
	li	6, 0
1:	add	7, 5, 6
	stdx	7, 4, 6
	addi	6, 6, 8
	cmpdi	6, 312
	bne	1b
	li	7, -1
	std	7, 256(4)		# nip
	std	7, 264(4)		# msr
	lis	7, -24576		# 0xa0000000
	rldicl	7, 7, 0, 32
	std	7, 296(4)		# xer
	lis	7, 0x1234
	ori	7, 7, 0x5678
	std	7, 304(4)		# ccr
	blr
