package runtime

// Pass has the optimizer make one pass: one step of every plan.
func (r *Runtime) Pass() error { return r.pass() }
