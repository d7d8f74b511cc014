package machine

import "testing"

func TestFileLaysRegistersOut(t *testing.T) {
	f := NewFile([]Register{
		{Name: "a", Size: 8}, {Name: "sp", Kind: StackPointer, Size: 8},
		{Name: "st0", Kind: Float, Size: 10}, {Name: "pc", Kind: PC, Size: 8},
	})
	if f.Size != 40 || f.SP != 1 || f.PC != 3 || f.Index("st0") != 2 || f.Index("none") != -1 {
		t.Fatalf("%+v", f)
	}
	s := f.NewState()
	f.SetWord(s, 3, 0x1122334455667788)
	copy(f.Bytes(s, 2), "0123456789")
	if f.Word(s, 3) != 0x1122334455667788 || f.Word(s, 1) != 0 || string(f.Bytes(s, 2)) != "0123456789" {
		t.Errorf("% x", s)
	}
}

func TestAccessNeedsItsPermission(t *testing.T) {
	for a, want := range map[Access]Perm{AccessRead: PermRead, AccessWrite: PermWrite, AccessFetch: PermExec} {
		if a.Perm() != want {
			t.Errorf("%v needs %v, want %v", a, a.Perm(), want)
		}
	}
}
