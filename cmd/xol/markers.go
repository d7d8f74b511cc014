package main

import (
	"bufio"

	"xol/arch"
	"xol/image"
	"xol/usdt"
)

// markerColumns are the widths of the cells of a marker's row.
var markerColumns = struct{ provider, name, place int }{12, 32, 36}

// markerList prints the static markers of files.
type markerList struct {
	w       *bufio.Writer
	palette palette
	files   int // begun
	stream  *stream
}

// markers prints the static markers of one file after the other. A file that
// cannot be read does not keep the others from being.
func (a *app) markers(opt *analyzeOptions, files []string) error {
	symbols, err := a.readSymbols(opt.symbols)
	if err != nil {
		return err
	}
	w, flush := a.results()
	list := &markerList{w: w, palette: a.palette()}
	if format := opt.format.value; format != formatTable {
		list.stream = newStream(w, format, "[", "\n]\n", func(r *records) {
			list.fields(r, "", new(markerRow))
		})
	}
	var result error
	for _, file := range files {
		if err := a.markersOf(list, file, symbols); err != nil {
			a.report(err)
			result = failed
		}
	}
	if list.stream != nil {
		list.stream.close()
	}
	return flush(result)
}

// markersOf prints the markers of one file, up to where it is damaged.
func (a *app) markersOf(list *markerList, path string, symbols []byte) error {
	img, err := a.openImage(path, symbols)
	if err != nil {
		return err
	}
	defer img.Close()
	isa, err := arch.ByMachine(img.Machine(), img.ByteOrder())
	if err != nil {
		return fileError(path, err)
	}
	syntax, err := arch.Markers(isa)
	if err != nil {
		return fileError(path, err)
	}
	list.begin(path, isa.Name()+" "+img.Kind().String())
	markers, damaged := img.Markers()
	for i := range markers {
		list.add(path, newMarkerRow(img, syntax, &markers[i]))
	}
	if damaged != nil {
		return fileError(path, damaged)
	}
	return nil
}

// markerRow is a marker with what its file says of it.
type markerRow struct {
	image.Marker
	sym string // the function that holds it
	off uint64
	err error // of the arguments
}

func newMarkerRow(img *image.Image, syntax usdt.Syntax, m *image.Marker) *markerRow {
	row := &markerRow{Marker: *m}
	name, base := img.Symbolize(m.Location)
	row.sym, row.off = name, m.Location-base
	_, row.err = usdt.Parse(syntax, m.Args, img.SymbolAddress)
	return row
}

func (l *markerList) begin(path, kind string) {
	if l.stream != nil {
		return
	}
	t := &table{palette: l.palette}
	if l.files++; l.files > 1 {
		t.end()
	}
	t.left(0, path, bold)
	t.left(0, kind, plain)
	t.end()
	t.end()
	t.right(addrWidth, "LOCATION", bold)
	t.right(addrWidth, "SEMAPHORE", bold)
	t.left(markerColumns.provider, "PROVIDER", bold)
	t.left(markerColumns.name, "NAME", bold)
	t.left(markerColumns.place, "FUNCTION", bold)
	t.left(0, "ARGUMENTS", bold)
	t.end()
	l.w.Write(t.buf)
}

func (l *markerList) add(path string, row *markerRow) {
	if l.stream != nil {
		r := records{format: l.stream.format}
		l.fields(&r, path, row)
		l.stream.write(r.buf)
		return
	}
	t := &table{palette: l.palette}
	t.addr(row.Location)
	if row.Semaphore != 0 {
		t.addr(row.Semaphore)
	} else {
		t.right(addrWidth, "-", dim)
	}
	t.left(markerColumns.provider, row.Provider, plain)
	t.left(markerColumns.name, row.Name, plain)
	t.left(markerColumns.place, placeName(row.sym, row.off), plain)
	t.left(0, row.Args, plain)
	if row.err != nil {
		t.left(0, row.err.Error(), red)
	}
	t.end()
	l.w.Write(t.buf)
}

func (l *markerList) fields(r *records, path string, row *markerRow) {
	r.begin()
	r.str("file", path)
	r.str("provider", row.Provider)
	r.str("name", row.Name)
	r.addr("location", row.Location)
	r.addr("base", row.Base)
	r.addr("semaphore", row.Semaphore)
	r.str("sym", row.sym)
	r.num("off", int(row.off))
	r.str("args", row.Args)
	r.only(row.err != nil)
	r.str("error", errorText(row.err))
	r.end()
}
