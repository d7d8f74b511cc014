package analyze_test

import (
	"fmt"

	"xol/analyze"
	"xol/classify"
	"xol/image"
)

// printVerdict prints what uprobes of Linux 6.12 make of a place in a program.
func printVerdict(path, place string) error {
	img, err := image.OpenFile(path, image.Options{})
	if err != nil {
		return err
	}
	defer img.Close()
	an, err := analyze.New(img, analyze.Options{Profile: classify.Uprobe612})
	if err != nil {
		return err
	}
	places, err := img.Resolve(place)
	if err != nil {
		return err
	}
	addr := places[0].Addr
	if f, ok := an.FunctionAt(addr); ok {
		verdict := an.Profile.At(&an.Judge(f).Func, addr)
		fmt.Println(verdict.OK(), verdict.Exec)
	}
	return nil
}

func Example() {
	if err := printVerdict("../cmd/xol/testdata/amd64.elf", "main+0x8"); err != nil {
		fmt.Println(err)
	}
	// Output: true slot
}
