package ppc64

import (
	"slices"
	"strconv"

	"xol/decode"
)

// argKind is a way to print an operand.
type argKind uint8

const (
	argNone    argKind = iota
	argGpr             // r3
	argGpr0            // r3, but 0 for register 0, which stands for no register
	argFpr             // f3
	argVr              // v3
	argVsr             // vs3
	argAcc             // a3
	argCrf             // cr3
	argCrb             // 4*cr3+eq
	argUint            // unsigned number
	argInt             // signed number
	argComp            // the bits inverted, as a number
	argCount           // number of bytes, where 0 stands for 32
	argDisp            // signed displacement before a base register
	argHash            // negative displacement
	argPcrel           // displacement from the instruction itself
	argBranch          // target of a branch
	argLiteral         // a number that is no operand
)

// Text returns the instruction in GNU assembler syntax with the names that
// GNU objdump -Mpower10 uses. The targets of branches are addresses, followed
// by the symbol that lookup knows for them; so are those of prefixed loads and
// stores, in a comment after the displacement. What is no instruction reads
// as .long or .byte.
//
// The names come from this package's own tables and not from ppc64asm: its
// Decode initializes package state without a lock, and it lacks many
// simplified mnemonics.
func (a ISA) Text(inst *decode.Inst, lookup decode.SymLookup) string {
	var buf [96]byte
	return string(a.appendText(buf[:0], inst, lookup))
}

func (a ISA) appendText(b []byte, inst *decode.Inst, symbol decode.SymLookup) []byte {
	number := lookup(inst.Detail)
	if number == 0 || inst.Has(decode.Invalid) {
		return a.appendData(b, inst)
	}
	f := &formats[number]
	t := writer{b: b, inst: inst, symbol: symbol}
	switch op := codes[number].op(); op {
	case OpBranchCond, OpBranchLR, OpBranchCTR, OpBranchTAR:
		t.branch(f, op)
	case OpTrap:
		t.trap(f)
	case OpMoveSPR:
		t.moveSPR(f)
	default:
		t.format(f.nameFor(inst.Detail))
	}
	return t.b
}

// appendData writes bytes that are no instruction.
func (a ISA) appendData(b []byte, inst *decode.Inst) []byte {
	if inst.Len >= 4 {
		return appendHex(append(b, ".long "...), uint64(a.word(inst.Raw[:])))
	}
	b = append(b, ".byte "...)
	for i, v := range inst.Bytes() {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendHex(b, uint64(v))
	}
	return b
}

// nameFor returns the alias of f that word is written with, or f.
func (f *format) nameFor(word uint64) *format {
	own := aliases[f.firstAlias : f.firstAlias+f.numAlias]
	for i := range own {
		if own[i].matches(word) {
			return &own[i].format
		}
	}
	return f
}

// writer builds the text of one instruction.
type writer struct {
	b      []byte
	inst   *decode.Inst
	symbol decode.SymLookup
	inArgs bool // an operand has been written
}

func (t *writer) string(s string) { t.b = append(t.b, s...) }

// next separates operands.
func (t *writer) next() {
	if t.inArgs {
		t.b = append(t.b, ',')
	} else {
		t.b = append(t.b, ' ')
	}
	t.inArgs = true
}

// register, number and bit write an operand.
func (t *writer) register(prefix string, n uint64) {
	t.next()
	t.b = strconv.AppendUint(append(t.b, prefix...), n, 10)
}

func (t *writer) number(n int64) {
	t.next()
	t.b = strconv.AppendInt(t.b, n, 10)
}

func (t *writer) bit(n uint64) {
	t.next()
	if n >= 4 {
		t.b = append(strconv.AppendUint(append(t.b, "4*cr"...), n/4, 10), '+')
	}
	t.string(crBits[n&3])
}

// target writes the address that the instruction speaks of, with its symbol.
func (t *writer) target() {
	t.b = appendHex(t.b, t.inst.Target)
	if t.symbol == nil {
		return
	}
	name, base := t.symbol(t.inst.Target)
	if name == "" {
		return
	}
	t.string(" <")
	t.string(name)
	if off := t.inst.Target - base; off != 0 {
		t.b = appendHex(append(t.b, '+'), off)
	}
	t.b = append(t.b, '>')
}

// format writes the instruction as f says.
func (t *writer) format(f *format) {
	t.string(f.name)
	for i, id := range f.args {
		if id == 0 {
			break
		}
		if !args[id].optional || !f.defaultsFrom(i, t.inst.Detail) {
			t.arg(&args[id])
		}
	}
}

// defaultsFrom reports whether all optional operands from number i on have
// their default values.
func (f *format) defaultsFrom(i int, word uint64) bool {
	for _, id := range f.args[i:] {
		a := &args[id]
		if v, _ := a.raw(word); a.optional && v != uint64(a.def) {
			return false
		}
	}
	return true
}

func (t *writer) arg(a *arg) {
	v, width := a.raw(t.inst.Detail)
	v <<= a.scale
	if a.base {
		t.base(a, v)
		return
	}
	switch a.kind {
	case argGpr:
		t.register("r", v)
	case argGpr0:
		if v == 0 {
			t.register("", 0)
		} else {
			t.register("r", v)
		}
	case argFpr:
		t.register("f", v)
	case argVr:
		t.register("v", v)
	case argVsr:
		t.register("vs", v)
	case argAcc:
		t.register("a", v)
	case argCrf:
		t.register("cr", v)
	case argCrb:
		t.bit(v)
	case argUint:
		t.register("", v)
	case argInt, argDisp:
		t.number(a.signed(t.inst.Detail))
	case argComp:
		t.register("", ^v&(1<<width-1))
	case argCount:
		t.register("", (v-1)&31+1)
	case argHash:
		t.number(int64(v) - 1<<width<<a.scale)
	case argPcrel:
		t.number(a.signed(t.inst.Detail))
		t.string(" # ")
		t.target()
	case argBranch:
		t.next()
		t.target()
	case argLiteral:
		t.register("", uint64(a.def))
	}
}

// base writes the base register of a displacement.
func (t *writer) base(a *arg, v uint64) {
	t.b = append(t.b, '(')
	if a.kind != argGpr0 || v != 0 {
		t.b = append(t.b, 'r')
	}
	t.b = append(strconv.AppendUint(t.b, v, 10), ')')
}

// branch writes a conditional branch: by the name of its condition where BO
// and BI have one, else with BO and BI as numbers.
func (t *writer) branch(f *format, op Op) {
	word := uint32(t.inst.Detail)
	bo, bi := boField(word), uint64(word>>16&31)
	ending, operands := f.name[2:], f.args[2:]
	hint := branchHint(bo)
	onCTR, onCR := bo&boIgnoreCTR == 0, bo&boIgnoreCR == 0
	switch {
	case onCTR && op != OpBranchCTR && (onCR || bi == 0):
		t.string(counterName(bo))
		t.string(ending)
		t.string(hint)
		if onCR {
			t.bit(bi)
		}
	case !onCTR && onCR:
		t.b = append(t.b, 'b')
		t.string(conditions[bi&3|uint64(bo&boTrue)>>1])
		t.string(ending)
		t.string(hint)
		if bi >= 4 || op != OpBranchCond && !f.defaultsFrom(2, t.inst.Detail) {
			t.register("cr", bi>>2)
		}
	case bo == boAlways && bi == 0 && op != OpBranchCond:
		t.b = append(t.b, 'b')
		t.string(ending)
	default:
		t.string(f.name)
		t.string(hint)
		t.number(int64(bo))
		t.bit(bi)
	}
	for i, id := range operands {
		if id == 0 || args[id].optional && f.defaultsFrom(2+i, t.inst.Detail) {
			break
		}
		t.arg(&args[id])
	}
}

// branchHint returns the sign for the prediction in BO.
func branchHint(bo uint32) string {
	var a, likely uint32
	switch {
	case bo&boAlways == boIgnoreCR: // 1a00t, 1a01t
		a, likely = bo&boTrue, bo&1
	case bo&boAlways == boIgnoreCTR: // 001at, 011at
		a, likely = bo&boZero, bo&1
	}
	switch {
	case a == 0:
		return ""
	case likely == 0:
		return "-"
	}
	return "+"
}

// counterName returns the start of the name of a branch that counts.
func counterName(bo uint32) string {
	if bo&boIgnoreCR != 0 {
		return countNames[2][bo&boZero/boZero]
	}
	return countNames[bo&boTrue/boTrue][bo&boZero/boZero]
}

// trap writes a trap with the name of its condition where TO has one.
func (t *writer) trap(f *format) {
	word := uint32(t.inst.Detail)
	to := boField(word)
	const trapWord = 0x7fe00008 // tw 31,r0,r0
	switch name := trapNames[to]; {
	case t.inst.Detail == trapWord:
		t.string("trap")
		return
	case name == "":
		t.format(f)
		return
	case f.name[len(f.name)-1] == 'i':
		t.string(f.name[:2])
		t.string(name)
		t.b = append(t.b, 'i')
	default:
		t.string(f.name)
		t.string(name)
	}
	t.arg(&args[f.args[1]])
	t.arg(&args[f.args[2]])
}

// moveSPR writes mfspr or mtspr with the name of the register where the
// assembler has a mnemonic for it.
func (t *writer) moveSPR(f *format) {
	rt, spr, dir := f.args[0], f.args[1], sprRead
	if f.name == "mtspr" {
		rt, spr, dir = spr, rt, sprWrite
	}
	n, _ := args[spr].raw(t.inst.Detail)
	name, number := sprMnemonic(uint16(n), dir)
	if name == "" {
		t.format(f)
		return
	}
	t.string(f.name[:2])
	t.string(name)
	if number >= 0 && dir == sprWrite {
		t.number(number)
	}
	t.arg(&args[rt])
	if number >= 0 && dir == sprRead {
		t.number(number)
	}
}

// sprMnemonic returns the ending of the mnemonic that moves an SPR, and the
// register's number in its bank, -1 where it is alone.
func sprMnemonic(spr uint16, dir sprDir) (name string, number int64) {
	for _, bank := range &sprBanks {
		d := spr - bank.first
		if d%bank.step == 0 && d/bank.step < 4 {
			return bank.name, int64(d / bank.step)
		}
	}
	i, ok := slices.BinarySearchFunc(sprNames[:], spr, func(s sprName, spr uint16) int {
		return int(s.spr) - int(spr)
	})
	if !ok || sprNames[i].dir&dir == 0 {
		return "", -1
	}
	return sprNames[i].name, -1
}

func appendHex(b []byte, v uint64) []byte {
	return strconv.AppendUint(append(b, "0x"...), v, 16)
}
