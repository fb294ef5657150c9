package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
)

// Serve serves every function through the functions framework, each at its entry point, and returns the address. It does
// so once; a process has one framework.
func Serve(ctx context.Context) (string, error) {
	serving.once.Do(func() { serving.address, serving.err = serve(ctx) })
	return serving.address, serving.err
}

var serving struct {
	once    sync.Once
	address string
	err     error
}

func serve(ctx context.Context) (string, error) {
	if err := os.Unsetenv("FUNCTION_TARGET"); err != nil { // with a target it would serve that alone
		return "", err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(address, ":")

	// The framework lists its functions on standard output, where the story is printed.
	stdout := os.Stdout
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	os.Stdout = null
	defer func() { os.Stdout = stdout }()

	failed := make(chan error, 1)
	go func() { failed <- funcframework.StartHostPort(host, port) }()
	for {
		err := answers(ctx, "http://"+address)
		if err == nil {
			return "http://" + address, nil
		}
		select {
		case err := <-failed:
			return "", fmt.Errorf("it did not start: %w", err)
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), err)
		default: // it does not say when it listens
		}
	}
}

// answers asks for anything at all. Once there is an answer, nothing is written to standard output any more.
func answers(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
