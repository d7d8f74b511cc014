package events

import (
	"fmt"
	"strings"
)

// ID names a mistake as the error log of Linux's tracing does, without the
// prefix TP_ERR_ [kernel/trace/trace_probe.h].
type ID string

// The mistakes that Parse and, of lines for an event that exists, CheckJoin
// report.
const (
	FileNotFound     ID = "FILE_NOT_FOUND"
	NoRegularFile    ID = "NO_REGULAR_FILE"
	BadRefCount      ID = "BAD_REFCNT"
	RefCountOpen     ID = "REFCNT_OPEN_BRACE"
	BadRefSuffix     ID = "BAD_REFCNT_SUFFIX"
	BadUprobeOffset  ID = "BAD_UPROBE_OFFS"
	BadMaxActiveType ID = "BAD_MAXACT_TYPE" // MAXACT_NO_KPROBE before Linux 6.5
	BadMaxActive     ID = "BAD_MAXACT"
	MaxActiveTooBig  ID = "MAXACT_TOO_BIG"
	BadProbeAddr     ID = "BAD_PROBE_ADDR"
	NonUniqueSymbol  ID = "NON_UNIQ_SYMBOL"
	BadReturnProbe   ID = "BAD_RETPROBE"
	BadAddrSuffix    ID = "BAD_ADDR_SUFFIX"
	NoGroupName      ID = "NO_GROUP_NAME"
	GroupTooLong     ID = "GROUP_TOO_LONG"
	BadGroupName     ID = "BAD_GROUP_NAME"
	NoEventName      ID = "NO_EVENT_NAME"
	EventTooLong     ID = "EVENT_TOO_LONG"
	BadEventName     ID = "BAD_EVENT_NAME"
	RetvalOnProbe    ID = "RETVAL_ON_PROBE"
	BadStackNumber   ID = "BAD_STACK_NUM"
	BadArgNumber     ID = "BAD_ARG_NUM"
	BadVariable      ID = "BAD_VAR"
	BadRegister      ID = "BAD_REG_NAME"
	BadMemAddr       ID = "BAD_MEM_ADDR"
	BadImmediate     ID = "BAD_IMM"
	StringNotClosed  ID = "IMMSTR_NO_CLOSE"
	FileOnKprobe     ID = "FILE_ON_KPROBE"
	BadFileOffset    ID = "BAD_FILE_OFFS"
	SymbolOnUprobe   ID = "SYM_ON_UPROBE"
	TooManyOps       ID = "TOO_MANY_OPS"
	DerefNeedBrace   ID = "DEREF_NEED_BRACE"
	BadDerefOffset   ID = "BAD_DEREF_OFFS"
	DerefOpenBrace   ID = "DEREF_OPEN_BRACE"
	CommCantDeref    ID = "COMM_CANT_DEREF"
	BadFetchArg      ID = "BAD_FETCH_ARG"
	ArrayNotClosed   ID = "ARRAY_NO_CLOSE"
	BadArraySuffix   ID = "BAD_ARRAY_SUFFIX"
	BadArrayNumber   ID = "BAD_ARRAY_NUM"
	ArrayTooBig      ID = "ARRAY_TOO_BIG"
	BadType          ID = "BAD_TYPE"
	BadString        ID = "BAD_STRING"
	BadSymString     ID = "BAD_SYMSTRING"
	BadBitfield      ID = "BAD_BITFIELD"
	ArgNameTooLong   ID = "ARG_NAME_TOO_LONG"
	NoArgName        ID = "NO_ARG_NAME"
	BadArgName       ID = "BAD_ARG_NAME"
	UsedArgName      ID = "USED_ARG_NAME"
	ArgTooLong       ID = "ARG_TOO_LONG"
	NoArgBody        ID = "NO_ARG_BODY"
	FailRegProbe     ID = "FAIL_REG_PROBE"
	DiffProbeType    ID = "DIFF_PROBE_TYPE"
	DiffArgType      ID = "DIFF_ARG_TYPE"
	SameProbe        ID = "SAME_PROBE"
	NoSupBTFArg      ID = "NOSUP_BTFARG"
	NoEntryArgs      ID = "NOFENTRY_ARGS"
	DoubleArgs       ID = "DOUBLE_ARGS"
	NeedStringType   ID = "NEED_STRING_TYPE"
	TooManyArgs      ID = "TOO_MANY_ARGS"

	// Invalid is a line that is no command at all: Linux refuses it with EINVAL
	// and logs nothing.
	Invalid ID = "EINVAL"
)

// texts holds, for each mistake, the text of Linux's error log and a sentence
// that says what is expected instead.
var texts = map[ID][2]string{
	FileNotFound:     {"Failed to find the given file", "The path before the last colon names no file."},
	NoRegularFile:    {"Not a regular file", "Only a program or library can be probed."},
	BadRefCount:      {"Invalid reference counter offset", "Between the parentheses stands the file offset of the counter, a number."},
	RefCountOpen:     {"Reference counter brace is not closed", "The reference counter's offset ends in a closing parenthesis."},
	BadRefSuffix:     {"Reference counter has wrong suffix", "Nothing may follow the reference counter."},
	BadUprobeOffset:  {"Invalid uprobe offset", "After the last colon stands an offset in the file, a number."},
	BadMaxActiveType: {"Maxactive is only for function exit", "Only a probe that starts with r takes a number of active calls."},
	BadMaxActive:     {"Invalid maxactive number", "The number of active calls is a positive number."},
	MaxActiveTooBig:  {"Maxactive is too big", "At most 4096 calls can be followed at once."},
	BadProbeAddr:     {"Invalid probed address or symbol", "Expected is an address, or a known function with an offset that is not negative."},
	NonUniqueSymbol:  {"The symbol is not unique", "Several functions have this name; give the address instead."},
	BadReturnProbe:   {"Retprobe address must be an function entry", "A return probe stands at a function's first instruction."},
	BadAddrSuffix:    {"Invalid probed address suffix", "The only suffix of a place is %return."},
	NoGroupName:      {"Group name is not specified", "A group name is expected before the slash."},
	GroupTooLong:     {"Group name is too long", "A group name has at most 63 characters."},
	BadGroupName:     {"Group name must follow the same rules as C identifiers", "A group name has letters, digits, underscores and hyphens, and starts with none of the digits."},
	NoEventName:      {"Event name is not specified", "A name is expected after the colon."},
	EventTooLong:     {"Event name is too long", "An event name has at most 63 characters."},
	BadEventName:     {"Event name must follow the same rules as C identifiers", "An event name has letters, digits and underscores, and does not start with a digit."},
	RetvalOnProbe:    {"$retval is not available on probe", "Only a probe on a function's return has a result."},
	BadStackNumber:   {"Invalid stack number", "The stack of the kernel has at most 2048 words."},
	BadArgNumber:     {"Invalid argument number", "Arguments are numbered from 1."},
	BadVariable:      {"Invalid $-valiable specified", "There are $stack, $stackN, $argN, $retval and $comm."},
	BadRegister:      {"Invalid register name", "The architecture has no register of that name in the kernel's register frame."},
	BadMemAddr:       {"Invalid memory address", "After @ stands a number, or a symbol."},
	BadImmediate:     {"Invalid immediate value", "After the backslash stands a number, or a string in quotes."},
	StringNotClosed:  {"String is not closed with '\"'", "A string ends in a quote; it cannot contain spaces."},
	FileOnKprobe:     {"File offset is not available with kprobe", "Only a uprobe belongs to a file."},
	BadFileOffset:    {"Invalid file offset value", "After @+ stands an offset in the file, a number."},
	SymbolOnUprobe:   {"Symbol is not available with uprobe", "A uprobe reads memory at an address or a file offset."},
	TooManyOps:       {"Dereference is too much nested", "An argument is fetched in at most 15 steps."},
	DerefNeedBrace:   {"Dereference needs a brace", "What is dereferenced stands in parentheses after the offset."},
	BadDerefOffset:   {"Invalid dereference offset", "The offset before the parenthesis is a number."},
	DerefOpenBrace:   {"Dereference brace is not closed", "A closing parenthesis is missing."},
	CommCantDeref:    {"$comm can not be dereferenced", "A task's name and a string are values, not addresses."},
	BadFetchArg:      {"Invalid fetch argument", "An argument starts with one of % $ @ + - and \\."},
	ArrayNotClosed:   {"Array is not closed", "The number of elements ends in a closing bracket."},
	BadArraySuffix:   {"Array has wrong suffix", "Nothing may follow the number of elements."},
	BadArrayNumber:   {"Invalid array size", "The number of elements is a positive number."},
	ArrayTooBig:      {"Array number is too big", "An array has at most 64 elements."},
	BadType:          {"Unknown type is specified", "The type is none of those that this kind of event knows."},
	BadString:        {"String accepts only memory argument", "Strings and arrays are read from memory that the argument names."},
	BadSymString:     {"Symbol String doesn't accept data/userdata", "A symbol's name is found for a register, an argument, a result or a word of memory."},
	BadBitfield:      {"Invalid bitfield", "A bitfield is b<width>@<offset>/<container> and fits in its container."},
	ArgNameTooLong:   {"Argument name is too long", "An argument name has at most 32 characters."},
	NoArgName:        {"Argument name is not specified", "A name is expected before the equals sign."},
	BadArgName:       {"Argument name must follow the same rules as C identifiers", "An argument name has letters, digits and underscores, and does not start with a digit."},
	UsedArgName:      {"This argument name is already used", "An earlier argument, or a field that every event has, has this name."},
	ArgTooLong:       {"Argument expression is too long", "An argument has at most 63 characters after its name."},
	NoArgBody:        {"No argument expression", "What to fetch is expected after the equals sign."},
	FailRegProbe:     {"Failed to register probe event", "A symbol of an argument is not written as SYM, SYM+OFFSET or SYM-OFFSET."},
	DiffProbeType:    {"Probe type is different from existing probe", "The probes of an event all stand at entries, or all at returns."},
	DiffArgType:      {"Argument type or name is different from existing probe", "The probes of an event all record values of the same names and types."},
	SameProbe:        {"There is already the exact same probe event", "Another probe of the event needs another place or other arguments."},
	NoSupBTFArg:      {"BTF is not available or not supported", "Arguments by name, and $arg*, need type information of the program, which is not read."},
	NoEntryArgs:      {"$arg* can be used only on function entry or exit", "Elsewhere in a function, and in uprobes, arguments are not known by number."},
	DoubleArgs:       {"$arg* can be used only once in the parameters", "All arguments were asked for before."},
	NeedStringType:   {"$comm and immediate-string only accepts string type", "The value is a string; its only type is string."},
	TooManyArgs:      {"Too many arguments are specified", "An event has at most 128 arguments."},
	Invalid:          {"Invalid argument", "A line is p, r or - with what belongs to it: p[:[GROUP/][EVENT]] PLACE [ARGUMENTS]."},
}

// Text returns the text of Linux's error log.
func (id ID) Text() string { return texts[id][0] }

// Explanation returns a sentence that says what is expected instead.
func (id ID) Explanation() string { return texts[id][1] }

// Error is a line that Linux would refuse.
type Error struct {
	ID   ID
	Line string
	Pos  int // of the mistake in Line, in bytes
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s) at %d: %s", e.ID.Text(), e.ID, e.Pos, e.ID.Explanation())
}

// Caret returns the line, and below it a ^ under the mistake, as Linux's error
// log shows it.
func (e *Error) Caret() string {
	pad := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, e.Line[:min(max(e.Pos, 0), len(e.Line))])
	return e.Line + "\n" + pad + "^"
}
