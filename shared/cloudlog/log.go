// Package cloudlog calls Cloud Logging's API: it asks the audit log who ended a slice that is gone, reads a log page by page for the
// verbs of people, and writes the canary. Entries of others arrive on topics, through sinks; package events reads them.
package cloudlog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/logging/v2"
	"google.golang.org/api/option"
)

// callTimeout bounds each call: the generated client has no bound of its own.
const callTimeout = 30 * time.Second

// Log is Cloud Logging. It is safe for concurrent use.
type Log struct {
	opts []option.ClientOption

	mu  sync.Mutex
	svc *api.Service
}

// EmulatorHost names the variable with the address of another Cloud Logging, HOST:PORT.
const EmulatorHost = "LOGGING_EMULATOR_HOST"

// New returns the log. Without options it has the default credentials, or calls the log of EmulatorHost without any. The client is
// made at the first call, which may never come.
func New(opts ...option.ClientOption) *Log { return &Log{opts: opts} }

func (l *Log) service(ctx context.Context) (*api.Service, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.svc != nil {
		return l.svc, nil
	}
	// The client outlives the call: its tokens must not depend on a context that ends with it.
	opts := l.opts
	if host := os.Getenv(EmulatorHost); host != "" && len(opts) == 0 {
		opts = []option.ClientOption{option.WithEndpoint("http://" + host + "/"), option.WithoutAuthentication()}
	}
	svc, err := api.NewService(context.WithoutCancel(ctx), opts...)
	if err != nil {
		return nil, fmt.Errorf("client for Cloud Logging: %w", err)
	}
	l.svc = svc
	return svc, nil
}

// ErrTooOften says that the project's quota of calls is used up for now. It counts by the minute.
var ErrTooOften = errors.New("no more calls for now")

// plain makes one line of an error of the log.
func plain(err error) error {
	var answer *googleapi.Error
	if !errors.As(err, &answer) {
		return err
	}
	text := fmt.Sprintf("HTTP status %d: %s", answer.Code, strings.Join(strings.Fields(answer.Message), " "))
	if answer.Code == http.StatusTooManyRequests {
		return fmt.Errorf("%w: %s", ErrTooOften, text)
	}
	return errors.New(text)
}
