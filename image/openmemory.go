package image

import (
	"math"
	"sync"
)

// OpenMemory makes an image of a kernel that runs. It returns ErrNoSymbols, or a
// *FormatError where sections make no sense.
func OpenMemory(m *Memory, opt Options) (*Image, error) {
	if len(m.Symbols) == 0 {
		return nil, ErrNoSymbols
	}
	im := &Image{opt: opt}
	im.memory, im.isas, im.size = m, opt.isas(), math.MaxInt64
	im.claims = func() (banner string, config []byte) { return m.Banner, nil }
	im.kernelNames = func() ([]MapSymbol, error) { return m.Symbols, nil }
	im.symbols = sync.OnceValues(im.readSymbols)
	im.relocate = im.relocateSection
	im.debug = func() (*debugFile, error) { return nil, nil }
	im.debugSymbols = im.debugFileSymbols
	if err := im.layMemory(); err != nil {
		return nil, err
	}
	if err := im.finishLayout(); err != nil {
		return nil, err
	}
	im.prepare()
	return im, nil
}
