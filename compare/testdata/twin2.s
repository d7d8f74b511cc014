# A function of a name that other files have as well.
.include "func.inc"
	.text
	func near2
	nop
	end near2
	func twin
	.rept 2
	nop
	.endr
	end twin
