package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestWhoIsGoneIsNamedInWords: people read it who never saw the protocol.
func TestWhoIsGoneIsNamedInWords(t *testing.T) {
	at := time.Date(2026, 7, 4, 9, 5, 1, 0, time.UTC)
	for _, c := range []struct {
		since time.Time
		err   error
		want  string
	}{
		{at, io.EOF, "is gone since 09:05:01Z: its pitcrew has ended"},
		{at, io.ErrUnexpectedEOF, "is gone since 09:05:01Z: its pitcrew has ended"},
		{at, os.NewSyscallError("read", syscall.ECONNRESET), "is gone since 09:05:01Z: its pitcrew has ended"},
		{time.Time{}, os.NewSyscallError("connect", syscall.ECONNREFUSED), "has not been heard yet: no pitcrew listens there"},
		{at, os.NewSyscallError("connect", syscall.EHOSTUNREACH), "is gone since 09:05:01Z: the network has no way to its machine"},
		{at, context.DeadlineExceeded, "is gone since 09:05:01Z: its machine does not answer"},
		{time.Time{}, &net.DNSError{Name: "llama-w-0", IsNotFound: true}, "has not been heard yet: no machine has the name llama-w-0"},
		{
			time.Time{},
			&net.DNSError{Name: "llama-w-0", IsTimeout: true, IsTemporary: true},
			"has not been heard yet: the name llama-w-0 cannot be looked up now",
		},
		{
			at, &net.DNSError{Err: "server misbehaving", Name: "llama-w-0", IsTemporary: true},
			"is gone since 09:05:01Z: the name llama-w-0 cannot be looked up now",
		},
		{at, errors.New("malformed answer"), "is gone since 09:05:01Z: malformed answer"},
	} {
		cause := &url.Error{Op: "Post", URL: "http://10.0.0.1:8791/", Err: fmt.Errorf("%w", c.err)}
		err := error(&GoneError{Address: "10.0.0.1:8791", Since: c.since, Err: cause})
		if want := "worker 0 (10.0.0.1:8791) " + c.want; err.Error() != want || !errors.Is(err, c.err) {
			t.Errorf("%v: %q, want %q", c.err, err, want)
		}
	}
}
