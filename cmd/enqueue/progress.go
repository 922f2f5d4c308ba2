package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A progress is the bar that shows how far a file has been enqueued. The nil
// progress shows nothing.
type progress struct{ bar *progressbar.ProgressBar }

// newProgress draws on w. total is the size of the file in bytes, 0 if unknown.
func newProgress(w io.Writer, total int64) *progress {
	if total <= 0 {
		total = -1
	}
	return &progress{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription("enqueued 0"),
		progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetSpinnerChangeInterval(0), // or it draws from a goroutine of its own, between our lines
		progressbar.OptionClearOnFinish(),
	)}
}

func (p *progress) show(offset int64, enqueued int) {
	if p != nil {
		p.bar.Describe(fmt.Sprintf("enqueued %d", enqueued))
		_ = p.bar.Set64(offset)
	}
}

// clear makes room for a line of text; the next show draws the bar below it.
func (p *progress) clear() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

// isTerminal tells whether people watch what is written to w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// sizeOf is the size of a regular file, 0 of anything else.
func sizeOf(in io.Reader) int64 {
	f, ok := in.(*os.File)
	if !ok {
		return 0
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
