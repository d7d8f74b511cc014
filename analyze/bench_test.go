package analyze_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/ulikunitz/xz"

	"xol/analyze"
	"xol/classify"
	"xol/image"
	"xol/internal/refdata"
)

// BenchmarkKernel judges the whole amd64 kernel, on one CPU and on all. Its
// instructions per second over those of one CPU are the speed-up.
func BenchmarkKernel(b *testing.B) {
	img, err := image.OpenFile(refdata.Full(b, "kernels", "amd64.vmlinux.xz"), image.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer img.Close()
	cpus := []int{1}
	if n := runtime.GOMAXPROCS(0); n > 1 {
		cpus = append(cpus, n)
	}
	for _, n := range cpus {
		b.Run(strconv.Itoa(n)+"cpu", func(b *testing.B) {
			insts := 0
			for b.Loop() {
				a, err := analyze.New(img, analyze.Options{Workers: n})
				if err != nil {
					b.Fatal(err)
				}
				err = analyze.Each(context.Background(), a, a.Functions(), analyze.Summarize, func(s analyze.Summary) error {
					insts += s.Insts
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(insts)/b.Elapsed().Seconds()/1e6, "Minsts/s")
		})
	}
}

// BenchmarkOptimize judges the whole amd64 kernel, opened anew each time,
// without and with verdicts on jump optimization for every instruction, in turns.
// The metrics are how many times as long it takes with them.
func BenchmarkOptimize(b *testing.B) {
	kernel := unpacked(b, refdata.Full(b, "kernels", "amd64.vmlinux.xz"))
	for _, profile := range []string{classify.Linux612, classify.ISA} {
		b.Run(profile, func(b *testing.B) {
			var plain, full time.Duration
			var sum analyze.Summary
			for b.Loop() {
				_, d := timeJudging(b, kernel, analyze.Options{Profile: profile})
				plain += d
				sum, d = timeJudging(b, kernel, analyze.Options{Profile: profile, Optimize: true})
				full += d
			}
			b.ReportMetric(float64(full)/float64(plain), "times")
			b.ReportMetric(float64(sum.Optimizable), "optimizable")
		})
	}
}

// timeJudging opens a file and judges all of it.
func timeJudging(b *testing.B, file []byte, opt analyze.Options) (sum analyze.Summary, took time.Duration) {
	start := time.Now()
	img, err := image.Open(bytes.NewReader(file), int64(len(file)), image.Options{})
	if err != nil {
		b.Fatal(err)
	}
	a, err := analyze.New(img, opt)
	if err != nil {
		b.Fatal(err)
	}
	err = analyze.Each(context.Background(), a, a.Functions(), analyze.Summarize, func(s analyze.Summary) error {
		sum.Merge(&s)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return sum, time.Since(start)
}

func unpacked(b *testing.B, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	r, err := xz.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		b.Fatal(err)
	}
	return data
}
