package image

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
)

// Banner returns what a kernel says first when it starts ("Linux version 6.1.0-50-amd64
// …"); empty for other files and where none is found.
func (im *file) Banner() string { return im.banner() }

func (im *file) readBanner() string {
	if im.kind != KindKernel {
		return ""
	}
	for data := range im.kernelData() {
		if text := findBanner(data); text != "" {
			return text
		}
	}
	return ""
}

// kernelData yields the contents of the sections that hold what a kernel says of
// itself: its constants, or where no section is called so, all that is not text.
func (im *file) kernelData() iter.Seq[[]byte] {
	constants := im.sectionNamed(".rodata")
	return func(yield func([]byte) bool) {
		for _, i := range im.byAddr {
			s := &im.sections[i]
			if !s.inFile() || s.exec() && !im.headless || constants != nil && s != constants {
				continue
			}
			if data, err := im.rawContents(s); err != nil || !yield(data) {
				return
			}
		}
	}
}

// release returns the version that a kernel says it has; empty where none is found.
func (im *file) release() string {
	release, _, _ := strings.Cut(strings.TrimPrefix(im.Banner(), bannerStart), " ")
	return release
}

// before reports whether a kernel is of an older version, by major and minor number.
func (im *file) before(version [2]int) bool {
	var major, minor int
	n, _ := fmt.Sscanf(im.release(), "%d.%d", &major, &minor)
	return n == len(version) && (major < version[0] || major == version[0] && minor < version[1])
}

// The bytes around the configuration that a kernel with CONFIG_IKCONFIG carries
// [kernel/configs.c].
var (
	configStart = []byte("IKCFG_ST")
	configEnd   = []byte("IKCFG_ED")
	gzipMagic   = []byte{0x1f, 0x8b}
)

// EmbeddedConfig returns the configuration that a kernel carries, packed by gzip. ok
// is false for other files and where there is none.
func (im *file) EmbeddedConfig() (packed []byte, ok bool) {
	if im.kind != KindKernel {
		return nil, false
	}
	for data := range im.kernelData() {
		if packed := findConfig(data); packed != nil {
			return packed, true
		}
	}
	return nil, false
}

func findConfig(data []byte) []byte {
	for {
		i := bytes.Index(data, configStart)
		if i < 0 {
			return nil
		}
		data = data[i+len(configStart):]
		if end := bytes.Index(data, configEnd); end >= 0 && bytes.HasPrefix(data, gzipMagic) {
			return data[:end]
		}
	}
}

// findBanner returns the banner in data. A pattern for printing one stands beside
// it, and a copy whose number is left out.
func findBanner(data []byte) string {
	const most = 512 // bytes of a banner
	for {
		i := bytes.Index(data, []byte(bannerStart))
		if i < 0 {
			return ""
		}
		data = data[i:]
		text := data[:min(len(data), most)]
		data = data[len(bannerStart):]
		end := bytes.IndexAny(text, "\n\x00")
		if end < 0 || text[len(bannerStart)] < '1' || text[len(bannerStart)] > '9' {
			continue
		}
		return printable(string(text[:end]))
	}
}

// Vermagic returns what a module has to have in common with the kernel that loads
// it ("6.1.0-50-amd64 SMP preempt mod_unload modversions"); empty for other files.
func (im *file) Vermagic() string {
	if im.kind != KindModule {
		return ""
	}
	s := im.sectionNamed(".modinfo")
	if s == nil {
		return ""
	}
	data, err := im.rawContents(s)
	if err != nil {
		return ""
	}
	for field := range bytes.SplitSeq(data, []byte{0}) {
		if magic, ok := strings.CutPrefix(string(field), "vermagic="); ok {
			return printable(magic)
		}
	}
	return ""
}
