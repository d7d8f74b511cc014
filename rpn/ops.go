package rpn

// opcode is what an instruction does. See the package comment.
type opcode uint8

// The operations. Those between OpAdd and OpGeS take two values and leave one.
const (
	opPush opcode = iota
	opReg
	opSetReg
	opGetLocal
	opSetLocal
	opAddLocal
	opFetchAddLocal
	opGetGlobal
	opSetGlobal
	opAddGlobal
	opFetchAddGlobal

	opLoad1
	opLoad2
	opLoad4
	opLoad8
	opLoad1S
	opLoad2S
	opLoad4S
	opStore1
	opStore2
	opStore4
	opStore8

	opAdd
	opSub
	opMul
	opDivU
	opDivS
	opModU
	opModS
	opAnd
	opOr
	opXor
	opShl
	opShrU
	opShrS
	opEq
	opNe
	opLtU
	opLeU
	opGtU
	opGeU
	opLtS
	opLeS
	opGtS
	opGeS

	opNeg
	opNot
	opIsZero
	opDup
	opDrop
	opSwap
	opOver
	opRot

	opJmp
	opJz
	opJnz
	opLoop
	opExit

	opLog
	opLogString

	numOps
)

// String returns the operation's name in programs.
func (op opcode) String() string {
	if op < numOps {
		return ops[op].name
	}
	return "invalid"
}

// operand is what is written after an operation.
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

// opInfo describes an operation. Of opLog, what it takes is in its operand.
type opInfo struct {
	name         string
	pops, pushes int
	operand      operand
	memory       bool // it may fault
}

var ops = [numOps]opInfo{
	opPush:           {"push", 0, 1, operandNumber, false},
	opReg:            {"reg", 0, 1, operandRegister, false},
	opSetReg:         {"setreg", 1, 0, operandRegister, false},
	opGetLocal:       {"get", 0, 1, operandLocal, false},
	opSetLocal:       {"set", 1, 0, operandLocal, false},
	opAddLocal:       {"addto", 1, 0, operandLocal, false},
	opFetchAddLocal:  {"fetchadd", 1, 1, operandLocal, false},
	opGetGlobal:      {"get", 0, 1, operandGlobal, false},
	opSetGlobal:      {"set", 1, 0, operandGlobal, false},
	opAddGlobal:      {"addto", 1, 0, operandGlobal, false},
	opFetchAddGlobal: {"fetchadd", 1, 1, operandGlobal, false},

	opLoad1:  {"load1", 1, 1, operandNone, true},
	opLoad2:  {"load2", 1, 1, operandNone, true},
	opLoad4:  {"load4", 1, 1, operandNone, true},
	opLoad8:  {"load8", 1, 1, operandNone, true},
	opLoad1S: {"load1s", 1, 1, operandNone, true},
	opLoad2S: {"load2s", 1, 1, operandNone, true},
	opLoad4S: {"load4s", 1, 1, operandNone, true},
	opStore1: {"store1", 2, 0, operandNone, true},
	opStore2: {"store2", 2, 0, operandNone, true},
	opStore4: {"store4", 2, 0, operandNone, true},
	opStore8: {"store8", 2, 0, operandNone, true},

	opAdd:  {"add", 2, 1, operandNone, false},
	opSub:  {"sub", 2, 1, operandNone, false},
	opMul:  {"mul", 2, 1, operandNone, false},
	opDivU: {"divu", 2, 1, operandNone, false},
	opDivS: {"divs", 2, 1, operandNone, false},
	opModU: {"modu", 2, 1, operandNone, false},
	opModS: {"mods", 2, 1, operandNone, false},
	opAnd:  {"and", 2, 1, operandNone, false},
	opOr:   {"or", 2, 1, operandNone, false},
	opXor:  {"xor", 2, 1, operandNone, false},
	opShl:  {"shl", 2, 1, operandNone, false},
	opShrU: {"shru", 2, 1, operandNone, false},
	opShrS: {"shrs", 2, 1, operandNone, false},
	opEq:   {"eq", 2, 1, operandNone, false},
	opNe:   {"ne", 2, 1, operandNone, false},
	opLtU:  {"ltu", 2, 1, operandNone, false},
	opLeU:  {"leu", 2, 1, operandNone, false},
	opGtU:  {"gtu", 2, 1, operandNone, false},
	opGeU:  {"geu", 2, 1, operandNone, false},
	opLtS:  {"lts", 2, 1, operandNone, false},
	opLeS:  {"les", 2, 1, operandNone, false},
	opGtS:  {"gts", 2, 1, operandNone, false},
	opGeS:  {"ges", 2, 1, operandNone, false},

	opNeg:    {"neg", 1, 1, operandNone, false},
	opNot:    {"not", 1, 1, operandNone, false},
	opIsZero: {"iszero", 1, 1, operandNone, false},
	opDup:    {"dup", 1, 2, operandNone, false},
	opDrop:   {"drop", 1, 0, operandNone, false},
	opSwap:   {"swap", 2, 2, operandNone, false},
	opOver:   {"over", 2, 3, operandNone, false},
	opRot:    {"rot", 3, 3, operandNone, false},

	opJmp:  {"jmp", 0, 0, operandLabel, false},
	opJz:   {"jz", 1, 0, operandLabel, false},
	opJnz:  {"jnz", 1, 0, operandLabel, false},
	opLoop: {"loop", 0, 0, operandLoop, false},
	opExit: {"exit", 0, 0, operandCode, false},

	opLog:       {"log", 0, 0, operandLog, false},
	opLogString: {"logstr", 1, 0, operandString, true},
}

// pops returns how many values an instruction takes.
func (in *instruction) pops() int {
	if in.Op == opLog {
		return int(in.Arg)
	}
	return ops[in.Op].pops
}
