package image_test

import (
	"fmt"

	"xol/image"
)

// Functions of a program, and the places that names mean.
func Example() {
	img, err := image.OpenFile("../cmd/xol/testdata/amd64.elf", image.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer img.Close()
	fmt.Println(img.Machine(), img.Kind())
	functions, err := img.Functions(image.ExtentSymbol)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range functions {
		fmt.Printf("%#x %d bytes of %s: %s, known from a %v\n", f.Addr, f.Size, f.Section, f.Name, f.Source)
	}
	places, err := img.Resolve("main+0x8")
	if err != nil {
		fmt.Println(err)
		return
	}
	code, err := img.Code(nil, places[0].Addr, 4)
	fmt.Printf("%#x holds % x %v\n", places[0].Addr, code, err)
	_, err = img.Resolve("mian")
	fmt.Println(err)
	// Output:
	// EM_X86_64 program
	// 0x400078 28 bytes of .text: main, known from a symbol
	// 0x400094 17 bytes of .text: vectors, known from a symbol
	// 0x4000a5 9 bytes of .text: refused, known from a symbol
	// 0x4000ae 6 bytes of .text: _ZN5shape4areaEi, known from a symbol
	// 0x4000b4 3 bytes of .text: twin, known from a symbol
	// 0x4000b7 6 bytes of .text: twin, known from a symbol
	// 0x400080 holds 48 8d 3d 36 <nil>
	// no symbol "mian" (similar: main)
}
