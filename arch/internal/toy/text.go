package toy

import (
	"fmt"
	"strings"

	"xol/decode"
)

// Text returns the instruction as its assembler would have it.
func (ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string {
	if inst.Has(decode.Invalid) || inst.Op == 0 || inst.Op >= opCount {
		return fmt.Sprintf(".word %#x", inst.Bytes())
	}
	f := &forms[inst.Op]
	var operands []string
	if f.register {
		operands = append(operands, fmt.Sprintf("r%d", registerOf(inst)))
	}
	if f.immediate {
		operands = append(operands, fmt.Sprint(immediateOf(inst)))
	}
	if f.target > 0 {
		operands = append(operands, targetText(inst.Target, lookup))
	}
	return strings.TrimSuffix(f.name+" "+strings.Join(operands, ", "), " ")
}

func targetText(addr uint64, lookup decode.SymLookup) string {
	if lookup != nil {
		if name, base := lookup(addr); name != "" {
			return fmt.Sprintf("%#x <%s+%#x>", addr, name, addr-base)
		}
	}
	return fmt.Sprintf("%#x", addr)
}
