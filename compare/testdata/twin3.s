# A function of a name that other files have as well.
.include "func.inc"
	.text
	func near3
	nop
	end near3
	func twin
	.rept 3
	nop
	.endr
	end twin
