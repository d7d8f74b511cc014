package decode

import "testing"

func TestPath(t *testing.T) {
	branch := Inst{Len: 1, Flow: FlowJumpIf, Props: Conditional}
	jump := Inst{Len: 1, Flow: FlowJump}
	plain := Inst{Len: 1}
	bad := Inst{Len: 1, Props: Invalid}
	insts := []Inst{plain, jump, plain, branch, plain, bad, plain}
	for i, want := range [][2]int{{0, 2}, {0, 2}, {2, 6}, {2, 6}, {2, 6}, {2, 6}, {6, 7}} {
		if from, to := Path(insts, i); from != want[0] || to != want[1] {
			t.Errorf("Path(%d) = [%d,%d), want %v", i, from, to, want)
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
