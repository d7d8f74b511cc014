package rpn

// Op is what an instruction does. See the package comment.
type Op uint8

// The operations. Those between OpAdd and OpGeS take two values and leave one.
const (
	OpPush Op = iota
	OpReg
	OpSetReg
	OpGetLocal
	OpSetLocal
	OpAddLocal
	OpFetchAddLocal
	OpGetGlobal
	OpSetGlobal
	OpAddGlobal
	OpFetchAddGlobal

	OpLoad1
	OpLoad2
	OpLoad4
	OpLoad8
	OpLoad1S
	OpLoad2S
	OpLoad4S
	OpStore1
	OpStore2
	OpStore4
	OpStore8

	OpAdd
	OpSub
	OpMul
	OpDivU
	OpDivS
	OpModU
	OpModS
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShrU
	OpShrS
	OpEq
	OpNe
	OpLtU
	OpLeU
	OpGtU
	OpGeU
	OpLtS
	OpLeS
	OpGtS
	OpGeS

	OpNeg
	OpNot
	OpIsZero
	OpDup
	OpDrop
	OpSwap
	OpOver
	OpRot

	OpJmp
	OpJz
	OpJnz
	OpLoop
	OpExit

	OpLog
	OpLogString

	numOps
)

// String returns the operation's name in programs.
func (op Op) String() string {
	if op < numOps {
		return ops[op].name
	}
	return "invalid"
}

// operand is what is written behind an operation.
type operand uint8

const (
	operandNone     operand = iota
	operandNumber           // any
	operandRegister         // of the target's file
	operandLocal            // a variable
	operandGlobal           // likewise
	operandLabel            // a place further down
	operandLoop             // a count and a place further up
	operandCode             // a number that may be left out
	operandLog              // a name and a number of values
	operandString           // a name and a number of bytes
)

// opInfo describes an operation. Of OpLog, what it takes is in its operand.
type opInfo struct {
	name         string
	pops, pushes int
	operand      operand
	memory       bool // it may fault
}

var ops = [numOps]opInfo{
	OpPush:           {"push", 0, 1, operandNumber, false},
	OpReg:            {"reg", 0, 1, operandRegister, false},
	OpSetReg:         {"setreg", 1, 0, operandRegister, false},
	OpGetLocal:       {"get", 0, 1, operandLocal, false},
	OpSetLocal:       {"set", 1, 0, operandLocal, false},
	OpAddLocal:       {"addto", 1, 0, operandLocal, false},
	OpFetchAddLocal:  {"fetchadd", 1, 1, operandLocal, false},
	OpGetGlobal:      {"get", 0, 1, operandGlobal, false},
	OpSetGlobal:      {"set", 1, 0, operandGlobal, false},
	OpAddGlobal:      {"addto", 1, 0, operandGlobal, false},
	OpFetchAddGlobal: {"fetchadd", 1, 1, operandGlobal, false},

	OpLoad1:  {"load1", 1, 1, operandNone, true},
	OpLoad2:  {"load2", 1, 1, operandNone, true},
	OpLoad4:  {"load4", 1, 1, operandNone, true},
	OpLoad8:  {"load8", 1, 1, operandNone, true},
	OpLoad1S: {"load1s", 1, 1, operandNone, true},
	OpLoad2S: {"load2s", 1, 1, operandNone, true},
	OpLoad4S: {"load4s", 1, 1, operandNone, true},
	OpStore1: {"store1", 2, 0, operandNone, true},
	OpStore2: {"store2", 2, 0, operandNone, true},
	OpStore4: {"store4", 2, 0, operandNone, true},
	OpStore8: {"store8", 2, 0, operandNone, true},

	OpAdd:  {"add", 2, 1, operandNone, false},
	OpSub:  {"sub", 2, 1, operandNone, false},
	OpMul:  {"mul", 2, 1, operandNone, false},
	OpDivU: {"divu", 2, 1, operandNone, false},
	OpDivS: {"divs", 2, 1, operandNone, false},
	OpModU: {"modu", 2, 1, operandNone, false},
	OpModS: {"mods", 2, 1, operandNone, false},
	OpAnd:  {"and", 2, 1, operandNone, false},
	OpOr:   {"or", 2, 1, operandNone, false},
	OpXor:  {"xor", 2, 1, operandNone, false},
	OpShl:  {"shl", 2, 1, operandNone, false},
	OpShrU: {"shru", 2, 1, operandNone, false},
	OpShrS: {"shrs", 2, 1, operandNone, false},
	OpEq:   {"eq", 2, 1, operandNone, false},
	OpNe:   {"ne", 2, 1, operandNone, false},
	OpLtU:  {"ltu", 2, 1, operandNone, false},
	OpLeU:  {"leu", 2, 1, operandNone, false},
	OpGtU:  {"gtu", 2, 1, operandNone, false},
	OpGeU:  {"geu", 2, 1, operandNone, false},
	OpLtS:  {"lts", 2, 1, operandNone, false},
	OpLeS:  {"les", 2, 1, operandNone, false},
	OpGtS:  {"gts", 2, 1, operandNone, false},
	OpGeS:  {"ges", 2, 1, operandNone, false},

	OpNeg:    {"neg", 1, 1, operandNone, false},
	OpNot:    {"not", 1, 1, operandNone, false},
	OpIsZero: {"iszero", 1, 1, operandNone, false},
	OpDup:    {"dup", 1, 2, operandNone, false},
	OpDrop:   {"drop", 1, 0, operandNone, false},
	OpSwap:   {"swap", 2, 2, operandNone, false},
	OpOver:   {"over", 2, 3, operandNone, false},
	OpRot:    {"rot", 3, 3, operandNone, false},

	OpJmp:  {"jmp", 0, 0, operandLabel, false},
	OpJz:   {"jz", 1, 0, operandLabel, false},
	OpJnz:  {"jnz", 1, 0, operandLabel, false},
	OpLoop: {"loop", 0, 0, operandLoop, false},
	OpExit: {"exit", 0, 0, operandCode, false},

	OpLog:       {"log", 0, 0, operandLog, false},
	OpLogString: {"logstr", 1, 0, operandString, true},
}

// pops returns how many values an instruction takes.
func (in *Inst) pops() int {
	if in.Op == OpLog {
		return int(in.Arg)
	}
	return ops[in.Op].pops
}
