# A function of a name that other files have as well.
.include "func.inc"
	.text
	func near1
	nop
	end near1
	func twin
	.rept 1
	nop
	.endr
	end twin
