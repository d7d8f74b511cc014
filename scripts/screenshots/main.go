// Command screenshots takes pictures of pages that xol report has written, for the
// documentation:
//
//	screenshots DIR NAME=PAGE.html#HASH…
//
// makes DIR/NAME-WIDTH-THEME.png for each width and theme.
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
				var shot []byte
				take := chromedp.CaptureScreenshot(&shot)
				if full {
					take = chromedp.FullScreenshot(&shot, 100)
				}
				if err := chromedp.Run(b.Context,
					chromedp.EmulateViewport(size.width, size.height),
					emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}),
					chromedp.Navigate("about:blank"),
					chromedp.Navigate("file://"+path+"#"+hash),
					chromedp.WaitVisible("html[data-ready] main .view", chromedp.ByQuery),
					chromedp.Sleep(400*time.Millisecond),
					take,
				); err != nil {
					return fmt.Errorf("%s: %w", p, err)
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
