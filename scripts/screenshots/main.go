// Command screenshots takes pictures of pages that xol report has written, for the
// documentation:
//
//	screenshots DIR NAME=PAGE.html#HASH…
//
// makes DIR/NAME-WIDTH-THEME.png for each width and theme.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/color/palette"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
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

// commonColours returns the 256 colours that are used most, of those with five bits
// for each part.
func commonColours(img image.Image) color.Palette {
	counts := map[[3]uint8]int{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := img.At(x, y).RGBA()
			counts[[3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(bl >> 8)}]++
		}
	}
	var list color.Palette
	for len(list) < 200 && len(counts) > 0 {
		most, n := [3]uint8{}, -1
		for c, k := range counts {
			if k > n || k == n && (c[0] < most[0] || c[0] == most[0] && (c[1] < most[1] || c[1] == most[1] && c[2] < most[2])) {
				most, n = c, k
			}
		}
		delete(counts, most)
		list = append(list, color.RGBA{most[0], most[1], most[2], 255})
	}
	return append(list, palette.WebSafe[:256-200:256-200]...)
}
