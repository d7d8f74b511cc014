// Package browser opens pages in a headless Chromium, for tests and for pictures of
// them.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// names are what the browser's program may be called.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

// Find returns the path of the browser's program.
func Find() (string, error) {
	var err error
	for _, name := range names {
		var path string
		if path, err = exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", err
}

// Browser is a browser with one page.
type Browser struct {
	Context context.Context // for actions of chromedp
	close   []func()

	mu       sync.Mutex
	problems []string
}

// Start starts the browser in a new folder for its profile.
func Start(ctx context.Context) (*Browser, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "xol-browser-*")
	if err != nil {
		return nil, err
	}
	b := &Browser{close: []func(){func() { os.RemoveAll(dir) }}}
	allocator, stop := chromedp.NewExecAllocator(ctx,
		chromedp.ExecPath(path),
		chromedp.UserDataDir(dir),
		chromedp.Headless,
		chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
	)
	b.close = append(b.close, stop)
	page, cancel := chromedp.NewContext(allocator)
	b.close = append(b.close, cancel)
	b.Context = page
	chromedp.ListenTarget(page, b.listen)
	if err := chromedp.Run(page, network.Enable(), runtime.Enable()); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// listen takes note of what goes wrong in the page, and of what it loads.
func (b *Browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problem("exception: " + e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
			var words []string
			for _, arg := range e.Args {
				words = append(words, arg.Description+string(arg.Value))
			}
			b.problem(fmt.Sprintf("console: %s", strings.Join(words, " ")))
		}
	case *network.EventRequestWillBeSent:
		url := e.Request.URL
		if !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") && url != "about:blank" {
			b.problem("request: " + url)
		}
	}
}

func (b *Browser) problem(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, text)
}

// Problems returns the errors in the console since the start, the exceptions, and the
// requests to a network.
func (b *Browser) Problems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.problems
}

// Close ends the browser.
func (b *Browser) Close() {
	for i := len(b.close) - 1; i >= 0; i-- {
		b.close[i]()
	}
	b.close = nil
}
