// Command screenshots takes pictures of pages, for the documentation:
//
//	screenshots DIR NAME=PAGE.html#HASH…
//
// makes DIR/NAME-WIDTH-THEME.png for each width and theme. A page that xol report has
// written is waited for until it has drawn itself; others until they are loaded.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"xol/internal/browser"
)

// sizes are those of the pictures, in pixels of the page.
var sizes = []struct{ width, height int64 }{{1280, 900}, {400, 860}}

func main() {
	themes := flag.String("themes", "light,dark", "comma-separated")
	full := flag.Bool("full", false, "take in the whole page, not only what a window shows")
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: screenshots DIR NAME=PAGE.html#HASH…")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Args()[1:], strings.Split(*themes, ","), *full); err != nil {
		fmt.Fprintln(os.Stderr, "screenshots:", err)
		os.Exit(1)
	}
}

// mostPerStep is how long a step of the browser may take: a page of a whole kernel is drawn
// in a few seconds. A browser that does not answer would be waited for without end.
const mostPerStep = time.Minute

// drawn is what a page of xol report has when it has drawn itself.
const drawn = "html[data-ready] main .view"

// picture opens a page and takes a picture of it.
func picture(ctx context.Context, url, theme string, width, height int64, full bool) (shot []byte, err error) {
	take := chromedp.CaptureScreenshot(&shot)
	if full {
		take = chromedp.FullScreenshot(&shot, 100)
	}
	var isReport bool
	for _, step := range []struct {
		name   string
		action chromedp.Action
	}{
		{"setting the size", chromedp.EmulateViewport(width, height)},
		{"setting the theme", emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}})},
		{"leaving the last page", chromedp.Navigate("about:blank")},
		{"loading", chromedp.Navigate(url)},
		{"looking what page it is", chromedp.Evaluate(`document.getElementById("found") !== null`, &isReport)},
		{"drawing", chromedp.ActionFunc(func(ctx context.Context) error {
			if !isReport {
				return nil
			}
			return chromedp.WaitVisible(drawn, chromedp.ByQuery).Do(ctx)
		})},
		{"waiting", chromedp.Sleep(400 * time.Millisecond)},
		{"taking the picture", take},
	} {
		limited, cancel := context.WithTimeoutCause(ctx, mostPerStep, fmt.Errorf("not done after %v", mostPerStep))
		err := chromedp.Run(limited, step.action)
		cause := context.Cause(limited)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, cmp.Or(cause, err))
		}
	}
	return shot, nil
}

func run(dir string, pictures, themes []string, full bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	b, err := browser.Start(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, p := range pictures {
		name, page, _ := strings.Cut(p, "=")
		file, hash, _ := strings.Cut(page, "#")
		path, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		for _, theme := range themes {
			for _, size := range sizes {
				shot, err := picture(b.Context, "file://"+path+"#"+hash, theme, size.width, size.height, full)
				if err != nil {
					return fmt.Errorf("%s, %d pixels, %s: %w", p, size.width, theme, err)
				}
				out := filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, size.width, theme))
				if err := save(out, shot); err != nil {
					return err
				}
			}
		}
	}
	for _, problem := range b.Problems() {
		fmt.Fprintln(os.Stderr, "screenshots:", problem)
	}
	return nil
}

// save writes a picture with as many colours as a small file can have.
func save(path string, shot []byte) error {
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return err
	}
	small := image.NewPaletted(img.Bounds(), commonColours(img))
	draw.Draw(small, img.Bounds(), img, img.Bounds().Min, draw.Src)
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(f, small); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// commonColours returns up to 256 colours: those that are used most, and of others that
// are about the same, one.
func commonColours(img image.Image) color.Palette {
	type colour [3]uint8
	const (
		exact = 4
		same  = 4 // bits of each part of the others that are looked at
	)
	counts := map[colour]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			red, green, blue, _ := img.At(x, y).RGBA()
			counts[colour{uint8(red >> 8), uint8(green >> 8), uint8(blue >> 8)}]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b colour) int {
		return cmp.Or(counts[b]-counts[a], slices.Compare(a[:], b[:]))
	})
	seen := map[colour]bool{}
	var list color.Palette
	for _, c := range all {
		rough := colour{c[0] >> (8 - same), c[1] >> (8 - same), c[2] >> (8 - same)}
		if (!seen[rough] || len(list) < exact) && len(list) < 256 {
			seen[rough] = true
			list = append(list, color.RGBA{c[0], c[1], c[2], 255})
		}
	}
	return list
}
