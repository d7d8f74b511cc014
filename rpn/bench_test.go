package rpn

import "testing"

// BenchmarkRun tells the time of a run, and of an instruction of it.
func BenchmarkRun(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"empty", ""},
		{"count", "global n\npush 1\naddto n"},
		{"filter", "arg 2\npush 4096\ngtu\njz no\narg 0\narg 1\nlog \"v\" 2\nno:"},
		{"arithmetic", "local a\ntop: get a\npush 3\nmul\npush 7\nadd\npush 5\nxor\nset a\nloop 1000 top"},
		{"stack", "push 1\npush 2\npush 3\ntop: dup\nrot\nover\nswap\ndrop\ndrop\nloop 1000 top"},
		{"memory", "top: push 0x10000\nload8\ndrop\npush 0x10000\nload4\ndrop\nloop 1000 top"},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := assemble(b, c.text)
			g, cpu, m := p.NewGlobals(), newCPU(), fixed{}
			var log quietLog
			b.ReportAllocs()
			steps := 0
			for b.Loop() {
				r, err := p.Run(cpu, m, g, log)
				if err != nil {
					b.Fatal(err)
				}
				steps = r.Steps
			}
			if steps > 0 {
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(steps), "ns/inst")
			}
		})
	}
}
