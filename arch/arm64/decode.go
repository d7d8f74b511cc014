package arm64

import (
	"encoding/binary"

	"xol/decode"
)

//go:generate go run gen.go

// Op is the class of an instruction, as it stands in decode.Inst.Op.
type Op uint16

// The classes. Everything that a probe mechanism need not tell apart is
// OpOther.
const (
	OpOther Op = iota

	OpADR               // adr
	OpADRP              // adrp
	OpLoadLiteral       // ldr of a W or X register
	OpLoadLiteralSigned // ldrsw
	OpLoadLiteralSIMD   // ldr of an S, D or Q register
	OpPrefetchLiteral   // prfm

	OpB                 // b
	OpBL                // bl
	OpBCond             // b.cond, bc.cond
	OpBCondAlways       // likewise with the conditions al and nv
	OpCompareBranch     // cbz, cbnz
	OpTestBranch        // tbz, tbnz
	OpCompareRegsBranch // cb<cc>, cbb<cc>, cbh<cc>
	OpBR                // br
	OpBLR               // blr
	OpRET               // ret
	OpBRAuth            // braa, brab, braaz, brabz
	OpBLRAuth           // blraa, blrab, blraaz, blrabz
	OpRETAuth           // retaa, retab, retaasppcr, retabsppcr
	OpReturnAuthPC      // retaasppc, retabsppc: the operand is a modifier
	OpERET              // eret, drps
	OpERETAuth          // eretaa, eretab
	OpTriggerEnter      // tenter
	OpTriggerExit       // texit

	OpAuthPC           // autiasppc, autibsppc: the operand is a modifier
	OpSignPC           // pacnbiasppc, pacnbibsppc: their own address is a modifier
	OpSignPCLandingPad // paciasppc, pacibsppc: likewise

	OpSVC  // svc
	OpHVC  // hvc
	OpSMC  // smc
	OpBRK  // brk
	OpHLT  // hlt
	OpDCPS // dcps1, dcps2, dcps3
	OpUDF  // udf

	OpHint            // hints, but for those below
	OpLandingPad      // bti with a target, paciasp, pacibsp
	OpWait            // wfe, wfi, wfet, wfit
	OpState           // msr of an immediate
	OpStatePrivileged // likewise, of a field that is out of reach at EL0
	OpSystemRegister  // mrs, msr, mrrs, msrr
	OpSystem          // sys, sysl, sysp and their aliases
	OpPrivileged      // others that are undefined at EL0

	OpLoadExclusive  // ldxr, ldaxr, ldxp, ldaxp, ldtxr, ldatxr
	OpStoreExclusive // stxr, stlxr, stxp, stlxp, sttxr, stltxr
	OpCLREX          // clrex
	OpMOPSPrologue   // cpyp, cpyfp, setp, setgp, setgop
	OpMOPSMain       // cpym, …
	OpMOPSEpilogue   // cpye, …

	opCount
)

// OpOf returns the class of an instruction that this package decoded.
func OpOf(i *decode.Inst) Op { return Op(i.Op) }

// WordOf returns the instruction word of an instruction that this package
// decoded.
func WordOf(i *decode.Inst) uint32 { return uint32(i.Detail) }

// offsetField is the place of the distance to the address that an instruction
// speaks of.
type offsetField uint8

const (
	offsetNone  offsetField = iota
	offset26                // bits 0-25, words
	offset19                // bits 5-23, words
	offset14                // bits 5-18, words
	offset9                 // bits 5-13, words
	offset21                // bits 5-23 and below them 29-30, bytes
	offsetPages             // likewise, pages of 4 KiB from the instruction's page
	offsetBack              // bits 5-20, words back
)

// offsetFields say how to compute the addresses, without a branch.
var offsetFields = [...]struct {
	left, right uint8  // shifts that isolate the field, with its sign, in 64 bits
	scale       uint8  // log2 of the unit of all but the two low bits
	field       uint64 // mask of the field: all ones where it is signed
	low         uint64 // mask of the two low bits
	sign        uint64 // all ones: the distance is subtracted
	page        uint64 // bits of the instruction's address that are dropped
	valid       uint64 // all ones: there is an address
	width       uint8  // of the operand, in bits: that of the instruction
}{
	offset26:    {left: 38, right: 38, field: all, valid: all, width: 32},
	offset19:    {left: 40, right: 45, field: all, valid: all, width: 32},
	offset14:    {left: 45, right: 50, field: all, valid: all, width: 32},
	offset9:     {left: 50, right: 55, field: all, valid: all, width: 32},
	offset21:    {left: 40, right: 45, field: all, low: 3, valid: all, width: 32},
	offsetPages: {left: 40, right: 45, scale: 12, field: all, low: 3, page: 0xfff, valid: all, width: 32},
	offsetBack:  {left: 43, right: 48, field: 0xffff, sign: all, valid: all, width: 32},
}

const all = 1<<64 - 1

// class is what holds for all instructions of an Op.
type class struct {
	flow   decode.Flow
	kind   decode.PCRelKind
	offset offsetField
	props  decode.Props
}

const (
	target   = decode.HasTarget
	branchIf = decode.HasTarget | decode.Conditional
)

// classes are indexed by Op, and hold nothing for those left out.
var classes = [opCount]class{
	OpADR:               {decode.FlowNone, decode.PCRelAddress, offset21, target},
	OpADRP:              {decode.FlowNone, decode.PCRelAddress, offsetPages, target},
	OpLoadLiteral:       {decode.FlowNone, decode.PCRelMemory, offset19, target},
	OpLoadLiteralSigned: {decode.FlowNone, decode.PCRelMemory, offset19, target},
	OpLoadLiteralSIMD:   {decode.FlowNone, decode.PCRelMemory, offset19, target},
	OpPrefetchLiteral:   {decode.FlowNone, decode.PCRelMemory, offset19, target},

	OpB:                 {decode.FlowJump, decode.PCRelBranch, offset26, target},
	OpBL:                {decode.FlowCall, decode.PCRelBranch, offset26, target | decode.Link},
	OpBCond:             {decode.FlowJumpIf, decode.PCRelBranch, offset19, branchIf},
	OpBCondAlways:       {decode.FlowJump, decode.PCRelBranch, offset19, target},
	OpCompareBranch:     {decode.FlowJumpIf, decode.PCRelBranch, offset19, branchIf},
	OpTestBranch:        {decode.FlowJumpIf, decode.PCRelBranch, offset14, branchIf},
	OpCompareRegsBranch: {decode.FlowJumpIf, decode.PCRelBranch, offset9, branchIf},
	OpBR:                {flow: decode.FlowJumpIndirect},
	OpBLR:               {flow: decode.FlowCallIndirect, props: decode.Link},
	OpRET:               {flow: decode.FlowReturn},
	OpBRAuth:            {flow: decode.FlowJumpIndirect},
	OpBLRAuth:           {flow: decode.FlowCallIndirect, props: decode.Link},
	OpRETAuth:           {flow: decode.FlowReturn},
	OpReturnAuthPC:      {decode.FlowReturn, decode.PCRelAddress, offsetBack, target},
	OpERET:              {flow: decode.FlowReturn, props: decode.Privileged},
	OpERETAuth:          {flow: decode.FlowReturn, props: decode.Privileged},
	OpTriggerEnter:      {flow: decode.FlowSyscall},
	OpTriggerExit:       {flow: decode.FlowReturn},

	OpAuthPC:           {decode.FlowNone, decode.PCRelAddress, offsetBack, target},
	OpSignPCLandingPad: {props: decode.LandingPad},

	OpSVC:  {flow: decode.FlowSyscall},
	OpHVC:  {flow: decode.FlowSyscall, props: decode.Privileged},
	OpSMC:  {flow: decode.FlowSyscall, props: decode.Privileged},
	OpBRK:  {flow: decode.FlowTrap},
	OpHLT:  {flow: decode.FlowTrap},
	OpDCPS: {flow: decode.FlowTrap, props: decode.Privileged},
	OpUDF:  {flow: decode.FlowTrap},

	OpLandingPad:      {props: decode.LandingPad},
	OpWait:            {flow: decode.FlowHalt},
	OpStatePrivileged: {props: decode.Privileged},
	OpPrivileged:      {props: decode.Privileged},
	OpLoadExclusive:   {props: decode.LoadExclusive},
	OpStoreExclusive:  {props: decode.StoreExclusive},
}

// Decode decodes the instruction at code[0], which stands at addr, whatever the
// alignment of addr. The tables are those of the Arm A-profile architecture up
// to Armv9.7. Words whose behaviour the manual leaves unpredictable are
// instructions, unallocated ones are not. A conditional branch on al or nv is
// an unconditional jump.
func (ISA) Decode(inst *decode.Inst, code []byte, addr uint64) error {
	if len(code) < 4 {
		*inst = decode.Inst{Addr: addr}
		return decode.ErrTruncated
	}
	word := binary.LittleEndian.Uint32(code)
	leaf := find(opTree[:], opTreeRoot, word)
	if leaf == 0 {
		*inst = decode.Inst{Addr: addr}
		return decode.ErrInvalid
	}
	op := leafOps[leaf]
	c := &classes[op]
	f := &offsetFields[c.offset]
	offset := uint64(int64(word)<<(f.left&63)>>(f.right&63))&f.field<<2 | uint64(word>>29)&f.low
	offset = (offset<<(f.scale&63) ^ f.sign) - f.sign
	*inst = decode.Inst{}
	inst.Addr = addr
	inst.Target = (addr&^f.page + offset) & f.valid
	inst.Detail = uint64(word)
	inst.Op = uint16(op)
	inst.Props = c.props
	inst.Flow = c.flow
	inst.Len = 4
	inst.PCRel = decode.PCRel{Kind: c.kind, Width: f.width}
	binary.LittleEndian.PutUint32(inst.Raw[:4], word)
	if (op == OpSystemRegister || op == OpSystem) && word>>16&7 != userOp1 {
		inst.Props |= decode.Privileged
	}
	return nil
}

// userOp1 is op1 of the system registers and instructions that are within reach
// of EL0 [Arm ARM, C5.1.3].
const userOp1 = 3

// find returns the leaf of a decision tree that holds word. The upper 11 bits
// select an entry after root. Each entry says where the next ones start and
// which bits select one of them: start<<12 | mask<<5 | shift; the tree starts
// with the leaves, each of which leads to itself. Most words need one step or
// two, so that the second comes without asking.
func find(tree []uint32, root, word uint32) uint32 {
	e := tree[root+word>>21]
	e = tree[e>>12+word>>(e&31)&(e>>5&0x7f)]
	for e>>12 >= root {
		e = tree[e>>12+word>>(e&31)&(e>>5&0x7f)]
	}
	return e >> 12
}
