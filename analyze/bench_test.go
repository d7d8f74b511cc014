package analyze_test

import (
	"context"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"xol/analyze"
	"xol/image"
)

// BenchmarkKernel judges the whole amd64 kernel, on one CPU and on all. Its
// instructions per second over those of one CPU are the speed-up.
func BenchmarkKernel(b *testing.B) {
	img, err := image.OpenFile(filepath.Join(shared, "kernels", "amd64.vmlinux.xz"), image.Options{})
	if err != nil {
		b.Skip(err)
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
