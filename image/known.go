package image

// anyTable is a symbol that every kernel has which names data at all.
const anyTable = "__start___ex_table"

// Missing returns what the file, with Options.Symbols, does not tell of a
// kernel: 0 where all is known, and for all files but kernels. A kernel's own
// table of symbols may hold those of functions only (without
// CONFIG_KALLSYMS_ALL), and a stripped one without such a table has none.
func (im *Image) Missing() (Missing, error) {
	if im.kind != KindKernel {
		return 0, nil
	}
	t, err := im.symbols()
	if err != nil {
		return 0, err
	}
	if im.textSymbols(t) == 0 {
		return MissingFunctions | MissingBlacklist | MissingTables, nil
	}
	if _, ok := t.address(anyTable); ok || t.source == namesOfFile {
		return im.hidden(), nil
	}
	if im.Running() { // which may tell its blacklist without names
		return MissingTables | im.hidden(), nil
	}
	return MissingBlacklist | MissingTables, nil
}

// hidden returns what a running kernel keeps from who asks.
func (im *file) hidden() Missing {
	if im.memory == nil {
		return 0
	}
	return im.memory.Missing
}
