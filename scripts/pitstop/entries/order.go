package entries

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/pitstop/terminal"
)

// longestStart bounds how much of a file is looked at to tell whether its times go up.
const longestStart = 64 << 10

// inOrder reads the entries of a file in the order of their times. Where they do not go up from the beginning, the end has to be known
// first. So a text that cannot be read twice is kept in a temporary file: one that comes through a pipe, or that was packed.
func inOrder(f io.Reader, name string, bar *terminal.Progress) (next func(*logfile.Batch) bool, end func()) {
	text := bufio.NewReaderSize(decode(bar.Reader(f)), longestStart)
	start, _ := text.Peek(longestStart) //nolint:errcheck // what comes of a short file is told where it is read
	if logfile.GoesUp(start) {
		return logfile.NewSplitter(text, name).Next, func() {}
	}
	if file, ok := f.(*os.File); ok && begins(file, start) {
		return logfile.NewEarlierFirst(io.NewSectionReader(file, 0, math.MaxInt64), name, bar.ReaderAt(file)).Next, func() {}
	}
	kept, err := os.CreateTemp("", "pitstop-*")
	if err != nil {
		return unusable(name, fmt.Errorf("%s: %w", name, noRoom(err))), func() {}
	}
	_ = os.Remove(kept.Name()) //nolint:errcheck // it is gone then, whatever becomes of the program
	return logfile.NewEarlierFirst(io.TeeReader(text, keeper{kept}), name, kept).Next, func() {
		_ = kept.Close() //nolint:errcheck // it is not needed any more
	}
}

// begins reports whether a file can be read at any place, and is the text that begins so itself.
func begins(f *os.File, start []byte) bool {
	own := make([]byte, len(start))
	n, _ := f.ReadAt(own, 0) //nolint:errcheck // then it does not begin so
	return bytes.Equal(own[:n], start)
}

// keeper writes a text into a temporary file.
type keeper struct{ into *os.File }

// Write implements io.Writer.
func (k keeper) Write(p []byte) (int, error) {
	n, err := k.into.Write(p)
	if err != nil {
		err = logfile.Unusable(noRoom(err))
	}
	return n, err
}

func noRoom(err error) error {
	return fmt.Errorf("its times do not go up, so it needs room for a temporary file; read the log with --order=asc, or name a folder in TMPDIR: %w", err)
}
