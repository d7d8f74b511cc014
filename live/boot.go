package live

import (
	"errors"
	"fmt"
	"strings"

	"xol/image"
	"xol/place"
)

// bootImage is the file that the running kernel was started from.
type bootImage struct {
	image  *image.Image
	path   string
	bias   uint64 // to be added to its addresses
	placed bool   // the bias is known
}

// bootFiles are where distributions have a kernel, by its release.
var bootFiles = []string{"/boot/vmlinuz-%s", "/boot/vmlinux-%s", "/lib/modules/%s/vmlinuz", "/usr/lib/modules/%s/vmlinuz"}

// BootError says that the file that the kernel was started from cannot be read.
type BootError struct {
	Path string
	Err  error
}

func (e *BootError) Error() string { return e.Path + ": " + why(e.Err) }

// Unwrap returns the error.
func (e *BootError) Unwrap() error { return e.Err }

// openBoot finds the file of a release. syms are those of the running kernel, by which
// it is known where the kernel was put.
func (s System) openBoot(release string, opt image.Options, syms []image.MapSymbol) (*bootImage, error) {
	if release == "" {
		return nil, &BootError{fmt.Sprintf(bootFiles[0], "…"), errors.New("which one it is, is not known")}
	}
	var first error
	for _, pattern := range bootFiles {
		path := s.path(fmt.Sprintf(pattern, release))
		img, err := image.OpenFile(path, opt)
		if err != nil {
			if first == nil {
				first = &BootError{path, err}
			}
			continue
		}
		b := &bootImage{image: img, path: path}
		if err := b.check(release); err != nil {
			img.Close()
			return nil, err
		}
		b.place(syms)
		return b, nil
	}
	return nil, first
}

// check finds out whether the file is a kernel of that release.
func (b *bootImage) check(release string) error {
	if b.image.Kind() != image.KindKernel {
		return &BootError{b.path, errors.New("it is no kernel")}
	}
	banner := b.image.Banner()
	if banner != "" && !strings.HasPrefix(banner, "Linux version "+release+" ") {
		return &BootError{b.path, fmt.Errorf("it is not that of the running kernel, but of %.60q", banner)}
	}
	return nil
}

// place finds out where the kernel was put: KASLR moves it.
func (b *bootImage) place(syms []image.MapSymbol) {
	for _, name := range []string{"_stext", "_text"} {
		addr, ok := b.image.SymbolAddress(name)
		if !ok {
			continue
		}
		for i := range syms {
			if s := &syms[i]; s.Module == "" && s.Name == name {
				b.bias, b.placed = s.Addr-addr, true
				return
			}
		}
	}
}

// blacklist and ftraceSites return what the file's tables tell, at the addresses that
// the running kernel has.
func (b *bootImage) blacklist() ([]image.Range, error)   { return b.marked(place.Blacklist) }
func (b *bootImage) ftraceSites() ([]image.Range, error) { return b.marked(place.Ftrace) }

func (b *bootImage) marked(kind place.Kind) (ranges []image.Range, err error) {
	missing, err := b.image.Missing()
	if err != nil {
		return nil, &BootError{b.path, err}
	}
	marks, err := b.image.Marks()
	if err != nil {
		return nil, &BootError{b.path, err}
	}
	if missing != 0 {
		return nil, &BootError{b.path, fmt.Errorf("it does not tell %v", missing)}
	}
	for _, m := range marks {
		if m.Kind&kind != 0 {
			ranges = append(ranges, image.Range{Addr: m.Addr + b.bias, Size: m.Len})
		}
	}
	return ranges, nil
}

// openBoot opens the file that the kernel was started from, once.
func (k *Kernel) openBoot() (*bootImage, error) {
	b, err := k.boot()
	if err == nil {
		k.booted = b
	}
	return b, err
}

// fromBoot asks the file that the kernel was started from for a list.
func (k *Kernel) fromBoot(ask func(*bootImage) ([]image.Range, error)) ([]image.Range, error) {
	b, err := k.openBoot()
	if err != nil {
		return nil, err
	}
	if !b.placed {
		return nil, &BootError{b.path, errors.New("it does not tell where its text is in memory")}
	}
	return ask(b)
}
