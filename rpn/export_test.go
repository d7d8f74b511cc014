package rpn

// Stack returns how many values an operation takes and leaves.
func (op Op) Stack() (pops, pushes int) { return ops[op].pops, ops[op].pushes }
