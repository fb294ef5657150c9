package cli

import (
	"bytes"
	"io"
	"os"
	"path/filepath"

	"pitstop.internal/scripts/pitstop/terminal"
)

// Keep writes a page into a file, whole or not at all: who opens it never sees half of one.
func Keep(out io.Writer, name string, write func(io.Writer) error) error {
	var page bytes.Buffer
	if err := write(&page); err != nil {
		return err
	}
	if err := replace(name, page.Bytes()); err != nil {
		return Usage("--html: %w", err)
	}
	terminal.Print(out, "written to "+name+"; any browser shows it")
	return nil
}

// replace gives a file another content.
func replace(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) //nolint:errcheck // the first error says more
	}
	return err
}
