package main

import (
	"bufio"
	"strings"
	"testing"
)

// events are what go test -json says of three packages.
const events = `{"Action":"start","Package":"p/good"}
{"Action":"run","Package":"p/good","Test":"TestA"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"    a_test.go:3: what passes is not printed\n"}
{"Action":"output","Package":"p/good","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"p/good","Test":"TestA"}
{"Action":"output","Package":"p/good","Test":"TestB","Output":"    b_test.go:9: not here: ../shared (kernels/a.xz)\n"}
{"Action":"output","Package":"p/good","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p/good","Test":"TestB"}
{"Action":"output","Package":"p/good","Test":"TestC","Output":"    b_test.go:9: a message before\n"}
{"Action":"output","Package":"p/good","Test":"TestC","Output":"    b_test.go:9: not here: ../shared (kernels/b.xz)\n"}
{"Action":"skip","Package":"p/good","Test":"TestC"}
{"Action":"output","Package":"p/good","Test":"TestD/x","Output":"    b_test.go:9: does not apply: words\n"}
{"Action":"skip","Package":"p/good","Test":"TestD/x"}
{"Action":"output","Package":"p/good","Test":"TestE","Output":"    b_test.go:9: whatever\n"}
{"Action":"skip","Package":"p/good","Test":"TestE"}
{"Action":"output","Package":"p/good","Output":"PASS\n"}
{"Action":"output","Package":"p/good","Output":"ok  \tp/good\t1.0s\n"}
{"Action":"pass","Package":"p/good"}
{"Action":"output","Package":"p/none","Output":"?   \tp/none\t[no test files]\n"}
{"Action":"skip","Package":"p/none"}
{"Action":"output","Package":"p/bad","Test":"TestF","Output":"    f_test.go:1: of the whole\n"}
{"Action":"output","Package":"p/bad","Test":"TestF/part","Output":"    f_test.go:2: wrong:\n"}
{"Action":"output","Package":"p/bad","Test":"TestF/part","Output":"        second line\n"}
{"Action":"output","Package":"p/bad","Test":"TestF/part","Output":"    --- FAIL: TestF/part (0.00s)\n"}
{"Action":"fail","Package":"p/bad","Test":"TestF/part"}
{"Action":"output","Package":"p/bad","Test":"TestF/fine","Output":"    f_test.go:3: not printed\n"}
{"Action":"pass","Package":"p/bad","Test":"TestF/fine"}
{"Action":"output","Package":"p/bad","Test":"TestF","Output":"--- FAIL: TestF (0.00s)\n"}
{"Action":"fail","Package":"p/bad","Test":"TestF"}
{"Action":"output","Package":"p/bad","Test":"TestG","Output":"panic: it ends here\n"}
{"Action":"output","Package":"p/bad","Output":"FAIL\tp/bad\t1.0s\n"}
{"Action":"fail","Package":"p/bad"}
`

const printed = `ok  	p/good	1.0s
?   	p/none	[no test files]
--- FAIL: TestF (0.00s)
    f_test.go:1: of the whole
    --- FAIL: TestF/part (0.00s)
        f_test.go:2: wrong:
            second line
panic: it ends here
FAIL	p/bad	1.0s
FAIL
not judged: 2 tests, not here: ../shared (kernels/a.xz, kernels/b.xz)
not judged: 1 test, for no reason that is known: whatever
1 case in which there is nothing to test
`

func TestReport(t *testing.T) {
	var out strings.Builder
	w := bufio.NewWriter(&out)
	r := newReport(w, false)
	if err := r.read(strings.NewReader(events)); err != nil {
		t.Fatal(err)
	}
	r.summary()
	w.Flush()
	if out.String() != printed {
		t.Errorf("%s\nwant\n%s", &out, printed)
	}
}

func TestIgnored(t *testing.T) {
	const listed = `{"ImportPath":"xol/verify","IgnoredGoFiles":["engine.go","a_test.go","b_test.go","c_test.go","d_test.go"]}
{"ImportPath":"xol/image","IgnoredGoFiles":["other.go"]}
{"ImportPath":"xol/place"}
`
	const want = "not judged: 4 files of tests, not built here: verify (a_test.go, b_test.go, c_test.go, …)"
	if got := strings.Join(ignored(strings.NewReader(listed)), "\n"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
