package amd64

import (
	"fmt"
	"strings"
	"testing"

	"xol/decode"
	"xol/internal/refdata"
)

// opsByName are the classes of the instructions that objdump calls so. What is
// not here is OpOther.
var opsByName = map[string]opSet{
	"jmp": opsOf(OpJump, OpJumpIndirect), "jmpabs": opsOf(OpJumpAbsolute), "ljmp": opsOf(OpJumpFar),
	"call": opsOf(OpCall, OpCallIndirect), "lcall": opsOf(OpCallFar), "xbegin": opsOf(OpXBegin),
	"ret": opsOf(OpReturn), "lret": opsOf(OpReturnFar), "iret": opsOf(OpReturnInterrupt),
	"sysret": opsOf(OpReturnSystem), "sysexit": opsOf(OpReturnSystem), "rsm": opsOf(OpReturnSystem),
	"uiret": opsOf(OpReturnSystem), "erets": opsOf(OpReturnSystem), "eretu": opsOf(OpReturnSystem), "seamret": opsOf(OpReturnSystem),
	"syscall": opsOf(OpSyscall), "sysenter": opsOf(OpCallSystem), "vmcall": opsOf(OpCallSystem), "vmmcall": opsOf(OpCallSystem),
	"vmgexit": opsOf(OpCallSystem), "tdcall": opsOf(OpCallSystem), "seamcall": opsOf(OpCallSystem),
	"int3": opsOf(OpBreakpoint), "int": opsOf(OpInterrupt), "int1": opsOf(OpDebugTrap),
	"ud0": opsOf(OpUndefined), "ud1": opsOf(OpUndefined), "ud2": opsOf(OpUndefined), "hlt": opsOf(OpHalt),
	"endbr64": opsOf(OpEndbr), "endbr32": opsOf(OpHint), "nop": opsOf(OpNop, OpLongNop, OpHint), "pause": opsOf(OpNop), "xchg": opsOf(OpNop, OpOther),
	"lea": opsOf(OpLea), "mov": opsOf(OpMoveLoad, OpMoveStore, OpMoveImmediate, OpMoveToSegment, OpOther), "movabs": opsOf(OpMoveImmediate, OpOther),
	"push": opsOf(OpPush, OpPushImmediate, OpPushMemory, OpOther), "pushp": opsOf(OpPush), "pop": opsOf(OpPop, OpPopMemory, OpLoadSegment), "popp": opsOf(OpPop),
	"lss": opsOf(OpLoadSegment), "lfs": opsOf(OpLoadSegment), "lgs": opsOf(OpLoadSegment),
	"pushf": opsOf(OpPushFlags), "popf": opsOf(OpPopFlags), "sti": opsOf(OpSetInterrupts),
	"movs": opsOf(OpString), "cmps": opsOf(OpString), "stos": opsOf(OpString), "lods": opsOf(OpString), "scas": opsOf(OpString),
	"sldt": opsOf(OpReadSystem), "str": opsOf(OpReadSystem), "sgdt": opsOf(OpReadSystem), "sidt": opsOf(OpReadSystem), "smsw": opsOf(OpReadSystem),
	"lar": opsOf(OpDescriptor), "lsl": opsOf(OpDescriptor), "verr": opsOf(OpDescriptor), "verw": opsOf(OpDescriptor),
	"cldemote": opsOf(OpHint), "rdsspd": opsOf(OpHint), "rdsspq": opsOf(OpHint),
	"loop": opsOf(OpLoop), "loope": opsOf(OpLoop), "loopne": opsOf(OpLoop), "jrcxz": opsOf(OpLoop), "jecxz": opsOf(OpLoop),
}

// opsFor returns the classes that an instruction with a text may have.
func opsFor(text string) opSet {
	name := bareMnemonic(text)
	for _, known := range []string{name, name[:len(name)-1]} { // without the operand's size
		if set, ok := opsByName[known]; ok && (known == name || strings.ContainsAny(name[len(known):], "bwlq")) {
			return set
		}
	}
	switch {
	case strings.HasPrefix(name, "prefetch") && !strings.HasPrefix(name, "prefetchw") && name != "prefetch", strings.HasPrefix(name, "bnd"):
		return opsOf(OpHint)
	case strings.HasPrefix(name, "loop"):
		return opsOf(OpLoop)
	case name[0] == 'j':
		return opsOf(OpJumpIf)
	}
	return opsOf(OpOther)
}

// bareMnemonic returns the mnemonic without what stands before it.
func bareMnemonic(text string) string {
	for _, word := range strings.Fields(text) {
		name, _, _ := strings.Cut(word, ",")
		switch {
		case strings.HasPrefix(name, "{"), strings.HasPrefix(name, "rex"),
			name == "rep", name == "repz", name == "repnz", name == "lock", name == "data16", name == "addr32",
			name == "bnd", name == "notrack", name == "xacquire", name == "xrelease",
			len(name) == 2 && strings.Contains("cs ds es ss fs gs", name):
			continue
		}
		return name
	}
	return text
}

// The Op of every instruction of the lists, against the mnemonic that objdump
// gives it.
func TestOps(t *testing.T) {
	seen := opSet(0)
	check := func(where string, fields []string) {
		var inst decode.Inst
		raw := unhex(t, fields[0])
		if (ISA{}).Decode(&inst, raw, 0x401000) != nil || int(inst.Len) != len(raw) || strings.Contains(fields[1], "(bad)") {
			return
		}
		if !opsFor(fields[1]).has(&inst) {
			t.Errorf("%s: %s %s: Op %d", where, fields[0], fields[1], inst.Op)
		}
		seen |= 1 << inst.Op
	}
	check("endbr64", []string{"f30f1efa", "endbr64"})
	check("jmpabs", []string{"d500a18877665544332211", "jmpabs $0x1122334455667788"})
	for _, path := range []string{"testdata/text-legacy.tsv.gz", "testdata/text-vector.tsv.gz"} {
		rows, err := refdata.Rows(path)
		if err != nil {
			t.Fatal(err)
		}
		for line, fields := range rows {
			check(fmt.Sprintf("%s, row %d", path, line+1), fields)
		}
	}
	for op := range opCount {
		if seen>>op&1 == 0 {
			t.Errorf("no instruction of Op %d", op)
		}
	}
}
