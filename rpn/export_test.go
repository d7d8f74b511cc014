package rpn

// Stack returns how many values an operation takes and leaves.
func (op opcode) Stack() (pops, pushes int) { return ops[op].pops, ops[op].pushes }
