package report

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"xol/analyze"
	"xol/classify"
	"xol/decode"
	"xol/internal/browser"
	"xol/internal/skip"
	"xol/optcheck"
)

// tab is a page in a browser.
type tab struct {
	*browser.Browser
	t   *testing.T
	url string
}

// show opens a page in a browser. At the test's end, there must have been no error in
// its console and no request.
func show(t *testing.T, page string) *tab {
	t.Helper()
	if _, err := browser.Find(); err != nil {
		skip.Missing(t, "chromium", err)
	}
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	b, err := browser.Start(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, problem := range b.Problems() {
			t.Error(problem)
		}
		b.Close()
	})
	s := &tab{b, t, "file://" + path}
	s.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.url), chromedp.WaitVisible("html[data-ready] main .view", chromedp.ByQuery))
	return s
}

func (s *tab) run(actions ...chromedp.Action) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.Context, 40*time.Second)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		s.t.Fatal(err)
	}
}

// eval returns what an expression of the page is, once it is there.
func eval[T any](s *tab, js string) (v T) {
	s.t.Helper()
	s.run(chromedp.Evaluate(js, &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

// until waits for an expression of the page to be true.
func (s *tab) until(what, js string) {
	s.t.Helper()
	for range 200 {
		if eval[bool](s, js) {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	s.t.Fatalf("%s: it never comes (%s); the address is %s, the page shows %.300s", what, js, eval[string](s, "location.hash"), eval[string](s, "document.querySelector('main').innerText"))
}

// instJSON is what the page knows of an instruction.
type instJSON struct {
	Addr, Bytes, Text string
	By                []verdictText
}

type verdictText struct {
	Rule, Exec, Hazard, Culprit, MovedTo, Instead string
	Boosted                                       bool
	JumpRule, JumpCulprit                         string
	Region, Moved                                 int
}

type codeJSON struct {
	Name   string
	Insts  []instJSON
	Blocks []string
}

// pageCode is a script that returns all functions of file n.
const pageCode = `(async (n) => {
	const file = files[n], all = [];
	const hex = (a) => a === undefined ? "" : file.hex(a);
	for (let i = 0; i < file.n; i++) {
		const code = await file.code(i);
		all.push({
			Name: file.names[i],
			Insts: code.insts.map((inst, k) => ({
				Addr: file.hex(inst.addr), Bytes: bytesOf(file, inst).join(""), Text: textOf(file, inst).map((p) => p.text ?? p).join(""),
				By: code.profiles.map((answers) => {
					const { verdict: v, jump: j } = answers[k];
					return {
						Rule: v.rule >= 0 ? file.book.rules[v.rule].id : "", Exec: v.exec || "", Hazard: v.hazard >= 0 ? file.book.hazards[v.hazard].id : "",
						Culprit: hex(v.culprit), MovedTo: hex(v.movedTo), Instead: hex(v.instead), Boosted: !!v.boosted,
						JumpRule: j && j.rule >= 0 ? file.book.rules[j.rule].id : "", JumpCulprit: j ? hex(j.culprit) : "", Region: j?.region || 0, Moved: j?.moved || 0,
					};
				}),
			})),
			Blocks: code.blocks.map((b) => b.from + "-" + b.to + " " + b.next.join(",")),
		});
	}
	return all;
})`

// wantCode is the same by package analyze.
func wantCode(t *testing.T, f File) (all []codeJSON) {
	t.Helper()
	x := newFile(f, 0, nil)
	base := x.base()
	var verdicts []map[uint64]verdictText
	for _, an := range f.Analyses {
		verdicts = append(verdicts, wantVerdicts(t, an))
	}
	for _, fn := range base.Functions() {
		r := new(analyze.Result)
		if err := base.JudgeInto(context.Background(), r, fn); err != nil {
			t.Fatal(err)
		}
		code := codeJSON{Name: nameOf(base.Image, &fn), Insts: []instJSON{}, Blocks: []string{}}
		for i := range r.Insts {
			inst := &r.Insts[i]
			j := instJSON{Addr: hex(inst.Addr), Bytes: fmt.Sprintf("%x", inst.Bytes()), Text: "(bad)"}
			if !inst.Has(decode.Invalid) {
				j.Text = base.ISA.Text(inst, nil)
			}
			for p := range f.Analyses {
				j.By = append(j.By, verdicts[p][inst.Addr])
			}
			code.Insts = append(code.Insts, j)
		}
		flow := f.Analyses[x.flow]
		flowing := r
		if x.flow != x.first {
			if own, ok := flow.FunctionAt(fn.Addr); ok && own.Addr == fn.Addr {
				if judged := flow.Judge(own); len(judged.Insts) == len(r.Insts) {
					flowing = judged
				}
			}
		}
		way, err := flow.Flow(flowing)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range way.Blocks {
			next := strings.Trim(strings.ReplaceAll(fmt.Sprint(b.Next), " ", ","), "[]")
			code.Blocks = append(code.Blocks, fmt.Sprintf("%d-%d %s", b.From, b.To, next))
		}
		all = append(all, code)
	}
	return all
}

// wantVerdicts are those of a profile by address.
func wantVerdicts(t *testing.T, an *analyze.Analysis) map[uint64]verdictText {
	t.Helper()
	all := map[uint64]verdictText{}
	for _, fn := range an.Functions() {
		r := new(analyze.Result)
		if err := an.JudgeInto(context.Background(), r, fn); err != nil {
			t.Fatal(err)
		}
		for i := range r.Insts {
			w := &r.Verdicts[i]
			v := verdictText{Exec: w.Exec.String(), Culprit: hex(w.Culprit), MovedTo: hex(w.MovedTo), Instead: hex(w.Instead), Boosted: w.Boosted}
			if w.Rule != nil {
				v.Rule = w.Rule.ID
			}
			if w.Hazard != nil {
				v.Hazard = w.Hazard.ID
			}
			var jump optcheck.Verdict
			if i < len(r.Optimize) {
				jump = r.Optimize[i]
			}
			v.JumpCulprit, v.Region, v.Moved = hex(jump.Culprit), int(jump.Region), int(jump.Moved)
			if jump.Rule != nil {
				v.JumpRule = jump.Rule.ID
			}
			all[r.Insts[i].Addr] = v
		}
	}
	return all
}

func hex(addr uint64) string {
	if addr == 0 {
		return ""
	}
	return fmt.Sprintf("%#x", addr)
}

// TestPageTellsWhatAnalyzeSays reads back, in a browser, all that the page has of
// instructions, verdicts and basic blocks.
func TestPageTellsWhatAnalyzeSays(t *testing.T) {
	var all []File
	for _, c := range []struct {
		file     string
		profiles []string
	}{
		{"functions.amd64", []string{classify.ISA, classify.Uprobe612}},
		{"functions.arm64", []string{classify.ISA, classify.Uprobe612}},
		{"functions.ppc64", []string{classify.ISA}},
		{"functions.ppc64le", []string{classify.Uprobe612, classify.ISA}},
		{"kernel.amd64", []string{classify.Linux612, classify.ISA}},
		{"kernel.arm64", []string{classify.ISA, classify.Linux612}},
		{"kernel.ppc64le", []string{classify.Linux612, classify.ISA}},
		{"module.amd64.ko", []string{classify.Linux612, classify.ISA}},
		{"plt.amd64.so", []string{classify.ISA, "linux-7.3"}},
	} {
		all = append(all, open(t, filepath.Join(fixtures, c.file), c.profiles...))
	}
	for _, name := range []string{"amd64-O2", "arm64-O0", "ppc64le-O2-power10"} {
		all = append(all, open(t, filepath.Join("..", "testdata", "guest", name), classify.ISA))
	}
	s := show(t, pageOf(t, all...))
	for n, f := range all {
		got := eval[[]codeJSON](s, fmt.Sprintf("%s(%d)", pageCode, n))
		if diff := cmp.Diff(wantCode(t, f), got); diff != "" {
			t.Errorf("%s (- analyze, + page):\n%.4000s", f.Name, diff)
		}
	}
}

// evil are names that would do harm in a page that takes them for markup or code.
var evil = []string{
	`</script><img src=x onerror="window.harmed=1">`,
	`<script>window.harmed=1</script>`,
	`'-(window.harmed=1)-'`,
	"\u202egnp.exe",
	`{{data}}`,
	`<!--<script>`,
}

// withNames returns a copy of an ELF file in which symbols of functions have other
// names.
func withNames(t *testing.T, path string, names []string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	symtab := f.SectionByType(elf.SHT_SYMTAB)
	strtab := f.Sections[symtab.Link]
	text, err := strtab.Data()
	if err != nil {
		t.Fatal(err)
	}
	const symSize, headSize, offsetIn, sizeIn = 24, 64, 24, 32
	left := names
	for at := uint64(0); at < symtab.Size && len(left) > 0; at += symSize {
		sym := data[symtab.Offset+at:]
		if elf.ST_TYPE(sym[4]) == elf.STT_FUNC && f.ByteOrder.Uint16(sym[6:]) != 0 {
			f.ByteOrder.PutUint32(sym, uint32(len(text)))
			text = append(append(text, left[0]...), 0)
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Fatalf("%s has too few functions", path)
	}
	head := binary.LittleEndian.Uint64(data[0x28:]) + uint64(symtab.Link)*headSize
	f.ByteOrder.PutUint64(data[head+offsetIn:], uint64(len(data)))
	f.ByteOrder.PutUint64(data[head+sizeIn:], uint64(len(text)))
	out := filepath.Join(t.TempDir(), "evil.elf")
	if err := os.WriteFile(out, append(data, text...), 0o666); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestHostileNames shows a file whose name and symbols are markup and scripts.
func TestHostileNames(t *testing.T) {
	f := open(t, withNames(t, filepath.Join(fixtures, "functions.amd64"), evil), classify.ISA, classify.Uprobe612)
	f.Name = evil[0] + "\n" + evil[4]
	page := pageOf(t, f, f)
	for _, name := range evil[:2] {
		if strings.Contains(page, name) {
			t.Errorf("%s stands in the page as it is", name)
		}
	}
	s := show(t, page)
	names := eval[[]string](s, "files[0].names")
	for _, want := range evil {
		want = strings.ReplaceAll(want, "\u202e", `\u202e`)
		found := false
		for _, name := range names {
			found = found || name == want
		}
		if !found {
			t.Errorf("%q is not among the names: %q", want, names)
		}
	}
	for _, hash := range []string{"#/", "#/functions", "#/compare?a=0&b=2", "#/compare?a=0&b=1&by=refused"} {
		s.goTo(hash)
	}
	for i := range evil {
		s.run(chromedp.Evaluate(fmt.Sprintf("go(functionLink(files[0], files[0].names.indexOf(%q)))", strings.ReplaceAll(evil[i], "\u202e", `\u202e`)), nil))
		s.until("the function", "document.querySelector('main h1').classList.contains('mono')")
	}
	if eval[bool](s, "'harmed' in window || document.querySelector('img') !== null") {
		t.Error("a name was taken for a script or for markup")
	}
}

// goTo shows the view of an address after #.
func (s *tab) goTo(hash string) {
	s.t.Helper()
	s.run(chromedp.Evaluate(fmt.Sprintf("(() => { const old = document.querySelector('main .view'); old.dataset.old = 1; go(%q) })()", hash), nil))
	s.until("the view of "+hash, "!document.querySelector('main .view').dataset.old")
}

// twoKernels are a page with two files of two profiles each.
func twoKernels(t *testing.T) *tab {
	t.Helper()
	return show(t, pageOf(t,
		open(t, filepath.Join(fixtures, "kernel.amd64"), classify.Linux612, classify.ISA),
		open(t, filepath.Join(fixtures, "kernel.arm64"), classify.Linux612, classify.ISA)))
}

func TestSearch(t *testing.T) {
	s := twoKernels(t)
	name := eval[string](s, "files[0].names[3]")
	addr := eval[string](s, "files[0].hex(files[0].addr[3])")
	for _, c := range []struct{ query, want string }{
		{name, name},
		{addr, name},
		{name + "+0x0", name},
		{name[:3] + "*", name[:3]},
	} {
		s.run(
			chromedp.KeyEvent("/"), // which goes to the field, from anywhere
			chromedp.WaitVisible("#search:focus", chromedp.ByQuery),
			chromedp.Evaluate("document.querySelector('#search').value = ''", nil),
			chromedp.SendKeys("#search", c.query, chromedp.ByID),
		)
		s.until("what is found for "+c.query, "!document.querySelector('#found').hidden")
		if got := eval[string](s, "document.querySelector('#found [aria-selected=true] .name')?.textContent || ''"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%q finds %q, want %q", c.query, got, c.want)
		}
		s.run(chromedp.KeyEvent(kb.Enter))
		s.until("the function", "location.hash.startsWith('#/function/')")
		s.goTo("#/")
	}
	s.run(chromedp.SendKeys("#search", "no such function", chromedp.ByID))
	s.until("that nothing is found", "document.querySelector('#found').textContent.startsWith('Nothing')")
}

func TestMapByKeyboard(t *testing.T) {
	s := twoKernels(t)
	shown := func() string { return eval[string](s, "document.querySelector('.trail [aria-current]').textContent") }
	top := shown()
	s.run(chromedp.Focus(".canvas canvas", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	s.until("a group is told", "document.querySelector('#status').textContent.includes('instruction')")
	s.run(chromedp.KeyEvent(kb.Enter))
	s.until("the group", fmt.Sprintf("document.querySelector('.trail [aria-current]').textContent !== %q", top))
	s.run(chromedp.KeyEvent(kb.Escape))
	s.until("the whole", fmt.Sprintf("document.querySelector('.trail [aria-current]').textContent === %q", top))
	for range 12 { // down to a function
		if eval[bool](s, "location.hash.startsWith('#/function/')") {
			return
		}
		s.run(chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter), chromedp.Sleep(60*time.Millisecond))
	}
	t.Error("no function comes up")
}

func TestProfilesAndFiles(t *testing.T) {
	s := twoKernels(t)
	card := "document.querySelector('.card.chosen h3').firstChild.textContent"
	if got := eval[string](s, card); got != classify.Linux612 {
		t.Errorf("%s is shown first", got)
	}
	s.run(chromedp.SetValue(`select[aria-label="Profile"]`, "1", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector('select[aria-label="Profile"]').dispatchEvent(new Event("change"))`, nil))
	s.until("the other profile", card+" === 'isa'")
	s.run(chromedp.SetValue(`select[aria-label="File"]`, "1", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector('select[aria-label="File"]').dispatchEvent(new Event("change"))`, nil))
	s.until("the other file", "document.querySelector('h1').textContent === 'kernel.arm64'")
}

func TestFunctionView(t *testing.T) {
	s := twoKernels(t)
	s.run(chromedp.Evaluate("go(functionLink(files[0], files[0].insts.indexOf(Math.max(...files[0].insts))))", nil))
	s.until("the listing", "document.querySelectorAll('.crow .text').length > 3")
	s.until("the address", "document.querySelector('.detail h2')?.textContent.length > 0")
	before := eval[string](s, "document.querySelector('.detail h2').textContent")
	s.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	s.until("another address by the keyboard", fmt.Sprintf("document.querySelector('.detail h2').textContent !== %q", before))
	if n := eval[int](s, "document.querySelectorAll('.detail .answer').length"); n != 2 {
		t.Errorf("%d profiles answer, want 2", n)
	}
	if got := eval[string](s, "document.querySelector('.detail').innerText"); !strings.Contains(got, "linux-6.12") || !strings.Contains(got, "isa") {
		t.Errorf("the address view says %q", got)
	}
}

func TestFunctionByName(t *testing.T) {
	s := twoKernels(t)
	name := eval[string](s, "files[0].names[2]")
	s.goTo("#/function/" + name)
	if got := eval[string](s, "document.querySelector('h1').textContent"); got != name {
		t.Errorf("%s is shown, want %s", got, name)
	}
	second := eval[string](s, "files[0].code(2).then((c) => files[0].nameAt(c.insts[1].addr))")
	s.goTo("#/function/" + second)
	if got := eval[string](s, "document.querySelector('.detail h2').textContent"); got != second {
		t.Errorf("%s is explained, want %s", got, second)
	}
	for _, nothing := range []string{"no%20such", name + "+0xffffff", "0x10", "0xzz", ""} {
		s.goTo("#/function/" + nothing)
		if got := eval[string](s, "document.querySelector('h1').textContent"); got != "Nothing is here" {
			t.Errorf("%q: %s", nothing, got)
		}
	}
}

func TestReasonLeadsToFunctions(t *testing.T) {
	s := twoKernels(t)
	link := `document.querySelector('.reasons th a')`
	rule := eval[string](s, link+".textContent")
	s.run(chromedp.Evaluate(link+".click()", nil))
	s.until("the list", fmt.Sprintf("document.querySelector('h1').textContent === %q && document.querySelectorAll('.frow').length > 0", rule))
	s.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.Enter))
	s.until("a function of the list", "location.hash.startsWith('#/function/')")
}

func TestCompare(t *testing.T) {
	s := twoKernels(t)
	s.goTo("#/compare?a=0&b=1&by=optimizable")
	for _, c := range []struct {
		row  string
		a, b int
	}{{"can be probed", 0, 1}, {"become jumps", 0, 1}} {
		js := fmt.Sprintf(`[...document.querySelectorAll(".totals tr")].find((r) => r.cells[0].textContent === %q).cells[%%d].firstChild.textContent`, c.row)
		for k, p := range []int{c.a, c.b} {
			index := map[string]int{"can be probed": 1, "become jumps": 10}[c.row]
			want := eval[string](s, fmt.Sprintf("number(files[0].profiles[%d].counts[%d])", p, index))
			if got := eval[string](s, fmt.Sprintf(js, k+1)); got != want {
				t.Errorf("%s: %s, want %s", c.row, got, want)
			}
		}
	}
	s.goTo("#/compare?a=0&b=2&show=changed")
	if n := eval[int](s, "document.querySelectorAll('.frow').length"); n == 0 {
		t.Fatal("two kernels have no function that differs")
	}
	s.goTo(eval[string](s, `link("/both/" + files[0].hex(files[0].addr[1]) + "/" + files[1].hex(files[1].addr[1]), { a: 0, b: 2 })`))
	if n := eval[int](s, "document.querySelectorAll('.side .vlist').length"); n != 2 {
		t.Errorf("%d listings side by side", n)
	}
}

// TestNothingSticksOut looks at each view in narrow and wide windows, light and dark:
// nothing may be wider than the window, and text has to stand out from its background.
func TestNothingSticksOut(t *testing.T) {
	s := twoKernels(t)
	fn := eval[string](s, "functionLink(files[0], files[0].insts.indexOf(Math.max(...files[0].insts)))")
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{400, 1280} {
			s.run(chromedp.EmulateViewport(width, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}))
			for _, hash := range []string{"#/", "#/functions", fn, "#/compare?a=0&b=2"} {
				s.goTo(hash)
				if wide := eval[int](s, "document.documentElement.scrollWidth"); wide > int(width) {
					t.Errorf("%s at %d: the page is %d pixels wide: %s", hash, width, wide, eval[string](s, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((e) => e.tagName + "." + e.className).join(", ")`))
				}
				if low := eval[[]string](s, lowContrast); len(low) > 0 {
					t.Errorf("%s at %d, %s: hard to read: %q", hash, width, theme, low)
				}
				if nameless := eval[[]string](s, `[...document.querySelectorAll("button, input, select, canvas, [role=listbox]")].filter((e) => !e.getAttribute("aria-hidden") && !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))`); len(nameless) > 0 {
					t.Errorf("%s: no name: %q", hash, nameless)
				}
			}
		}
	}
}

// lowContrast is a script that lists texts whose contrast with their background is
// less than 4.5 [WCAG 2.2, 1.4.3].
const lowContrast = `(() => {
	const parse = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
	const lum = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const under = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; } return [255, 255, 255, 1]; };
	const out = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility() || ["SCRIPT", "STYLE", "NOSCRIPT", "OPTION"].includes(e.tagName)) continue;
		const a = lum(parse(getComputedStyle(e).color)), b = lum(under(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) out.add(e.tagName + "." + e.className + " " + ratio.toFixed(1) + " " + e.textContent.slice(0, 30));
	}
	return [...out].slice(0, 8);
})()`

func TestThemeButton(t *testing.T) {
	s := twoKernels(t)
	back := "getComputedStyle(document.body).backgroundColor"
	seen := map[string]bool{}
	for range 3 {
		seen[eval[string](s, back)] = true
		s.run(chromedp.Click("#theme", chromedp.ByID))
	}
	if len(seen) != 2 {
		t.Errorf("the button shows %d backgrounds, want light and dark", len(seen))
	}
}

// kernels are where whole kernels may be.
var kernels = filepath.Join("..", "..", "shared", "kernels")

var allKernels = flag.Bool("kernels", false, "test the pages of all kernels, not only of the first")

// TestLargePages searches the pages of kernels and programs, where they are at hand.
func TestLargePages(t *testing.T) {
	skip.Long(t, "the pages of whole kernels")
	for i, c := range []struct {
		path     string
		profiles []string
		query    string // of a function
	}{
		{filepath.Join(kernels, "amd64.vmlinux.xz"), []string{classify.Linux612, classify.ISA}, "vfs_read"},
		{filepath.Join(kernels, "arm64.vmlinux.xz"), []string{classify.Linux612, classify.ISA}, "vfs_read"},
		{filepath.Join(kernels, "ppc64el.vmlinux.xz"), []string{classify.Linux612, classify.ISA}, "vfs_read"},
		{"/bin/bash", []string{classify.ISA, classify.Uprobe612}, "execute_command"},
		{"/usr/bin/python3", []string{classify.ISA, classify.Uprobe612}, "PyObject_Call"},
	} {
		if i > 0 && strings.HasSuffix(c.path, ".xz") && !*allKernels {
			continue
		}
		t.Run(filepath.Base(c.path), func(t *testing.T) {
			if _, err := os.Stat(c.path); err != nil {
				skip.Missing(t, "kernels and programs", err)
			}
			largePage(t, pageOf(t, open(t, c.path, c.profiles...)), c.query)
		})
	}
}

func largePage(t *testing.T, page, query string) {
	const limit = 15 << 20
	if len(page) > limit {
		t.Errorf("the page has %d bytes, more than %d", len(page), limit)
	}
	s := show(t, page)
	slowest := 0.0 // in milliseconds
	for _, query := range []string{query, "*alloc*", "e", "no such", eval[string](s, "files[0].hex(files[0].addr[files[0].n >> 1] + 1)")} {
		took := math.Inf(1) // the best of three, since other work goes on
		for range 3 {
			took = min(took, eval[float64](s, fmt.Sprintf(`(() => { const input = document.querySelector("#search"), start = performance.now();
				input.value = %q; input.dispatchEvent(new Event("input")); return performance.now() - start; })()`, query)))
		}
		slowest = max(slowest, took)
		if took > 1000 {
			t.Errorf("the search for %q took %.0f ms", query, took)
		}
	}
	took := eval[float64](s, `(async () => { const start = performance.now(); for (const part of [4, 3, 2]) await files[0].code(Math.floor(files[0].n / part)); return performance.now() - start; })()`)
	t.Logf("%.1f MiB; a search takes up to %.0f ms, three functions %.0f ms", float64(len(page))/(1<<20), slowest, took)
}
