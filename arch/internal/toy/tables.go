package toy

import "xol/decode"

// The instructions, by their first byte.
const (
	opAdd = iota + 1
	opJumpZero
	opJump
	opCall
	opReturn
	opCount
)

// form is what a number means.
type form struct {
	name      string
	flow      decode.Flow
	props     decode.Props
	register  bool
	immediate bool
	target    uint8 // bits of the distance, 0 for none
}

var forms = [opCount]form{
	opAdd:      {name: "add", register: true, immediate: true},
	opJumpZero: {name: "jz", flow: decode.FlowJumpIf, props: decode.Conditional, register: true, target: 16},
	opJump:     {name: "jump", flow: decode.FlowJump, target: 24},
	opCall:     {name: "call", flow: decode.FlowCall, props: decode.Link, target: 24},
	opReturn:   {name: "ret", flow: decode.FlowReturn},
}
