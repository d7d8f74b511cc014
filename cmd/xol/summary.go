package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"xol/analyze"
	"xol/arch"
	"xol/classify"
	"xol/image"
	"xol/kernel"
)

var errNotRegular = errors.New("it is no regular file")

// skipReason says why an ELF file has no row.
type skipReason uint8

// The reasons.
const (
	skipArch skipReason = iota
	skipClass
	skipType
	skipDebug
	skipText
	skipLink
	skipReasons
)

// skipped names the reasons in records, and says them in a table.
var skipped = [skipReasons]struct{ name, text string }{
	{"arch", "for another architecture"},
	{"class", "32-bit"},
	{"type", "neither a program nor an object: a memory dump, for example"},
	{"debug", "debugging information only"},
	{"text", "no instructions in it"},
	{"link", "another name of a file that is counted"},
}

// skipOf returns the reason to skip a file that cannot be opened with err, ok is false
// where err is to be reported.
func skipOf(err error) (reason skipReason, ok bool) {
	var (
		unknown *arch.UnknownError
		typ     *image.TypeError
		debug   *image.DebugFileError
	)
	switch {
	case errors.As(err, &unknown):
		return skipArch, true
	case errors.Is(err, image.ErrClass):
		return skipClass, true
	case errors.As(err, &typ):
		return skipType, true
	case errors.As(err, &debug):
		return skipDebug, true
	}
	return 0, false
}

// fileRow is what the summary says of a file.
type fileRow struct {
	path    string
	kind    string // "amd64 program"
	arch    string
	profile string
	totals  totals
	hazards []hazardCount // the most frequent first
}

// hazardCount counts a hazard in a file.
type hazardCount struct {
	hazard    *classify.Hazard
	count     int
	functions int
	files     int      // in the totals
	places    []string // the first one of each of the first functions
	last      uint64   // the function that was counted last
}

// placesKept is how many places a hazard's row keeps.
const placesKept = 5

// summary is the analysis of many files.
type summary struct {
	app     *app
	opt     *analyzeOptions
	program string // the profile for programs

	bar  *progress
	seen map[fileID]bool // by the walk alone

	mu      sync.Mutex
	rows    []fileRow
	skipped [skipReasons]int
	failed  bool
}

// summarize prints a row for each ELF file in the trees of roots.
func (a *app) summarize(opt *analyzeOptions, roots []string) error {
	s := &summary{app: a, opt: opt, program: opt.profile.value, seen: map[fileID]bool{}}
	if s.program == "" {
		s.program = uprobeProfile(runningRelease())
	}
	ctx, stop := interruptible()
	defer stop()
	s.bar = a.newProgress("files", s.count(ctx, roots))
	defer s.bar.finish()
	s.run(ctx, roots)
	s.bar.finish()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(s.rows) == 0 && !s.failed {
		return fmt.Errorf("%s: no ELF file that can be judged is in there", strings.Join(roots, ", "))
	}
	slices.SortFunc(s.rows, func(a, b fileRow) int {
		return cmp.Or(b.totals.Hazards-a.totals.Hazards, cmp.Compare(a.path, b.path))
	})
	w, flush := a.results()
	s.print(w, a.palette())
	var err error
	if s.failed {
		err = failed
	}
	return flush(err)
}

// uprobeProfile returns the name of the profile of the uprobes of a kernel: of the
// newest one known where the release is not.
func uprobeProfile(release string) string {
	if v := kernel.FromRelease(release).Version; v != 0 {
		return classify.ProfileName(classify.Uprobes, v)
	}
	newest := classify.Uprobe612
	for _, name := range allProfiles() {
		if m, _, _ := classify.ParseProfile(name); m == classify.Uprobes {
			newest = name
		}
	}
	return newest
}

// count returns how many files there are to look at, if anybody is to see how far the
// work has come.
func (s *summary) count(ctx context.Context, roots []string) (n int64) {
	if isTerminal(s.app.err) {
		walk(ctx, roots, func(walked) { n++ })
	}
	return n
}

// candidate is an open file that is to be judged.
type candidate struct {
	walked
	*os.File
	size int64
}

// run looks at all files in the order of their names, so that a file of several names
// always has the same one, and judges as many at a time as there are CPUs.
func (s *summary) run(ctx context.Context, roots []string) {
	workers := s.opt.cpus
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	files := make(chan candidate)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c := range files {
				s.add(ctx, c)
				c.Close()
				s.bar.add(1)
			}
		})
	}
	walk(ctx, roots, func(w walked) {
		if c, ok := s.open(w); ok {
			files <- c
		} else {
			s.bar.add(1)
		}
	})
	close(files)
	running.Wait()
}

// open opens a file, if it is one to be judged.
func (s *summary) open(w walked) (candidate, bool) {
	if w.err != nil {
		s.unreadable(w.path, w.err)
		return candidate{}, false
	}
	f, info, err := openRegular(w)
	if err != nil {
		s.unreadable(w.path, err)
		return candidate{}, false
	}
	id, known := idOf(info)
	switch {
	case !w.named && !looksELF(w.path, f):
	case known && s.seen[id]:
		s.skip(skipLink)
	default:
		s.seen[id] = known
		return candidate{w, f, info.Size()}, true
	}
	f.Close()
	return candidate{}, false
}

// add judges a file and keeps its row.
func (s *summary) add(ctx context.Context, c candidate) {
	row, err := s.judge(ctx, c.path, c.File, c.size)
	reason, skip := skipOf(err)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, image.ErrNotELF) && !c.named: // its name only looked like one
	case skip:
		s.skip(reason)
	case err != nil:
		s.unreadable(c.path, err)
	case row.totals.Insts == 0:
		s.skip(skipText)
	default:
		s.mu.Lock()
		s.rows = append(s.rows, row)
		s.mu.Unlock()
	}
}

func (s *summary) skip(reason skipReason) {
	s.mu.Lock()
	s.skipped[reason]++
	s.mu.Unlock()
}

// unreadable names a file that is left out.
func (s *summary) unreadable(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = true
	s.app.report(fileError(path, err))
}

// judge judges a file.
func (s *summary) judge(ctx context.Context, path string, r io.ReaderAt, size int64) (row fileRow, err error) {
	img, err := image.Open(r, size, image.Options{Path: path})
	if err != nil {
		return row, err
	}
	defer img.Close()
	an, err := s.analysis(img)
	if err != nil {
		return row, err
	}
	file := &analyzedFile{path: path, Analysis: an}
	row = fileRow{path: path, kind: file.kind(), arch: an.ISA.Name(), profile: an.Profile.Name()}
	err = analyze.Gather(ctx, an, an.Functions(), func(part *fileRow, r *analyze.Result) {
		var one analyze.Summary
		one.Set(r)
		part.totals.add(1, &one)
		if one.Hazards > 0 {
			part.addHazards(r)
		}
	}, func(part *fileRow) error {
		row.merge(part)
		*part = fileRow{}
		return nil
	})
	row.totals.Rank()
	rankHazards(row.hazards)
	return row, err
}

// analysis prepares the analysis of a file: of a program by the profile for programs,
// of a kernel or module by its own unless the user names another.
func (s *summary) analysis(img *image.Image) (*analyze.Analysis, error) {
	opt := analyze.Options{Profile: s.opt.profile.value, Kernel: s.opt.kconfig.facts, Workers: 1}
	if k := img.Kind(); k != image.KindKernel && k != image.KindModule {
		opt.Profile = s.program
	}
	m, _, _ := classify.ParseProfile(opt.Profile)
	opt.Optimize = !s.opt.noOptimize && m != classify.Uprobes
	an, err := analyze.New(img, opt)
	var profile *analyze.ProfileError
	if errors.As(err, &profile) && s.opt.profile.value == "" {
		// The running kernel is older than any that is known for the ISA.
		if i := slices.IndexFunc(profile.Known, isUprobeProfile); i >= 0 {
			opt.Profile = profile.Known[i]
			return analyze.New(img, opt)
		}
	}
	return an, err
}

func isUprobeProfile(name string) bool {
	m, _, _ := classify.ParseProfile(name)
	return m == classify.Uprobes
}

// addHazards counts the hazards of a function.
func (row *fileRow) addHazards(r *analyze.Result) {
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if !v.OK() || v.Hazard == nil {
			continue
		}
		h := hazardOf(&row.hazards, v.Hazard)
		h.count++
		if h.functions > 0 && h.last == r.Function.Addr {
			continue
		}
		h.functions++
		h.last = r.Function.Addr
		if len(h.places) < placesKept {
			// A name of its own does not keep all names of the file in memory.
			h.places = append(h.places, strings.Clone(placeName(r.Function.Name, r.Insts[i].Addr-r.Function.Addr)))
		}
	}
}

// hazardOf returns the count of a hazard, which it appends where there is none.
func hazardOf(list *[]hazardCount, hazard *classify.Hazard) *hazardCount {
	i := slices.IndexFunc(*list, func(h hazardCount) bool { return h.hazard.ID == hazard.ID })
	if i < 0 {
		i = len(*list)
		*list = append(*list, hazardCount{hazard: hazard})
	}
	return &(*list)[i]
}

// merge adds the counts of the functions that come next.
func (row *fileRow) merge(part *fileRow) {
	row.totals.add(part.totals.functions, &part.totals.Summary)
	for i := range part.hazards {
		o := &part.hazards[i]
		h := hazardOf(&row.hazards, o.hazard)
		h.count += o.count
		h.functions += o.functions
		h.files += o.files
		h.places = append(h.places, o.places[:min(len(o.places), placesKept-len(h.places))]...)
	}
}

func rankHazards(list []hazardCount) {
	slices.SortFunc(list, func(a, b hazardCount) int {
		return cmp.Or(b.count-a.count, cmp.Compare(a.hazard.ID, b.hazard.ID))
	})
}

// total adds up all rows.
func (s *summary) total() (sum fileRow, hazardous int) {
	for i := range s.rows {
		row := &s.rows[i]
		if row.totals.Hazards > 0 {
			hazardous++
		}
		part := fileRow{totals: row.totals}
		for _, h := range row.hazards {
			part.hazards = append(part.hazards, hazardCount{hazard: h.hazard, count: h.count, functions: h.functions, files: 1})
		}
		sum.merge(&part)
	}
	sum.totals.Rank()
	rankHazards(sum.hazards)
	return sum, hazardous
}
