package decode

import "testing"

func TestPaths(t *testing.T) {
	branch := Inst{Len: 1, Flow: FlowJumpIf, Props: Conditional}
	jump := Inst{Len: 1, Flow: FlowJump}
	plain := Inst{Len: 1}
	bad := Inst{Len: 1, Props: Invalid}
	insts := []Inst{plain, jump, plain, branch, plain, bad, plain}
	for i, want := range [][2]int{{0, 2}, {0, 2}, {2, 6}, {2, 6}, {2, 6}, {2, 6}, {6, 7}} {
		if from, to := Paths(insts, i, 1); from != want[0] || to != want[1] {
			t.Errorf("Paths(%d) = [%d,%d), want %v", i, from, to, want)
		}
	}
}

func TestFrom(t *testing.T) {
	insts := Sweep(evenLength{1}, nil, []byte{2, 0, 4, 0, 0, 0}, 0x10)
	for addr, want := range map[uint64]int{0: 0, 0x10: 0, 0x11: 1, 0x12: 1, 0x13: 2, 0x20: 2} {
		if got := From(insts, addr); got != want {
			t.Errorf("From(%#x) = %d, want %d", addr, got, want)
		}
	}
}

// TestFlowQuestions is the table of flow.go, for every kind of flow.
func TestFlowQuestions(t *testing.T) {
	type answers struct{ falls, resumes, continues, branch, call bool }
	want := [...]answers{
		FlowNone:         {falls: true, continues: true},
		FlowJump:         {branch: true},
		FlowJumpIf:       {branch: true}, // Conditional is always with it
		FlowCall:         {resumes: true, continues: true, branch: true, call: true},
		FlowReturn:       {branch: true},
		FlowJumpIndirect: {branch: true},
		FlowCallIndirect: {resumes: true, continues: true, branch: true, call: true},
		FlowSyscall:      {resumes: true, continues: true},
		FlowTrap:         {resumes: true},
		FlowHalt:         {resumes: true, continues: true},
	}
	answersOf := func(i Inst) answers {
		return answers{i.FallsThrough(), i.Resumes(), i.Continues(), i.IsBranch(), i.IsCall()}
	}
	for flow, w := range want {
		if got := answersOf(Inst{Flow: Flow(flow)}); got != w {
			t.Errorf("%v: %+v, want %+v", Flow(flow), got, w)
		}
		w.falls, w.continues = true, true
		if got := answersOf(Inst{Flow: Flow(flow), Props: Conditional}); got != w {
			t.Errorf("conditional %v: %+v, want %+v", Flow(flow), got, w)
		}
	}
	if len(want) != len(flowNames) {
		t.Errorf("%d kinds of flow, not %d", len(want), len(flowNames))
	}
	if got := answersOf(Inst{Props: Invalid}); got != (answers{}) {
		t.Errorf("no instruction: %+v", got)
	}
}
