package rpn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Disassemble returns the text of the program: what Assemble, for the same
// target, makes the same program of.
func (p *Program) Disassemble() string {
	var b strings.Builder
	for _, g := range p.code.Globals {
		fmt.Fprintf(&b, "\tglobal %s", g.Name)
		if g.Init != 0 {
			fmt.Fprintf(&b, " = %s", numberText(g.Init))
		}
		b.WriteByte('\n')
	}
	for _, name := range p.code.Locals {
		fmt.Fprintf(&b, "\tlocal %s\n", name)
	}
	labels := p.labels()
	handler := exitName
	for i := range p.code.Insts {
		in := &p.code.Insts[i]
		writeLabel(&b, labels, i)
		if ops[in.Op].memory {
			target := exitName
			if in.Target != noTarget {
				target = labelName(labels, in.Target)
			}
			if target != handler {
				handler = target
				fmt.Fprintf(&b, "\tonfault %s\n", handler)
			}
		}
		fmt.Fprintf(&b, "\t%v%s\n", in.Op, p.operandText(in, labels))
	}
	writeLabel(&b, labels, len(p.code.Insts))
	return b.String()
}

// labels returns the targets in their order.
func (p *Program) labels() []int {
	var targets []int
	for i := range p.code.Insts {
		if in := &p.code.Insts[i]; in.hasTarget() {
			targets = append(targets, in.Target)
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// hasTarget reports whether the instruction may go elsewhere.
func (in *instruction) hasTarget() bool {
	switch ops[in.Op].operand {
	case operandLabel, operandLoop:
		return true
	}
	return ops[in.Op].memory && in.Target != noTarget
}

func labelName(labels []int, target int) string {
	i, _ := slices.BinarySearch(labels, target)
	return "L" + strconv.Itoa(i+1)
}

func writeLabel(b *strings.Builder, labels []int, inst int) {
	if _, ok := slices.BinarySearch(labels, inst); ok {
		fmt.Fprintf(b, "%s:\n", labelName(labels, inst))
	}
}

func (p *Program) operandText(in *instruction, labels []int) string {
	switch ops[in.Op].operand {
	case operandNumber:
		return " " + numberText(in.Arg)
	case operandRegister:
		return " " + p.target.File.Registers[in.Arg].Name
	case operandLocal:
		return " " + p.code.Locals[in.Arg]
	case operandGlobal:
		return " " + p.code.Globals[in.Arg].Name
	case operandLabel:
		return " " + labelName(labels, in.Target)
	case operandLoop:
		return fmt.Sprintf(" %d %s", in.Arg, labelName(labels, in.Target))
	case operandCode:
		if in.Arg != 0 {
			return " " + numberText(in.Arg)
		}
	case operandLog, operandString:
		return fmt.Sprintf(" %q %d", in.Name, in.Arg)
	}
	return ""
}

// numberText writes small numbers of either sign in decimal, others, which may
// be addresses, in hexadecimal.
func numberText(v uint64) string {
	const small = 1 << 16
	if v+small < 2*small {
		return strconv.FormatInt(int64(v), 10)
	}
	return fmt.Sprintf("%#x", v)
}
