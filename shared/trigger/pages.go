package trigger

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
)

// RegisterPages registers an entry point that answers people and not Pub/Sub. It is called in init and does only that: the environment is read,
// and the handler built, at the first request. A failure is not kept, so one bad start does not end the instance.
func RegisterPages[C any](name string, build func(ctx context.Context, cfg C) (http.Handler, error)) {
	var (
		mu    sync.Mutex
		pages http.Handler
	)
	built := func(ctx context.Context) (http.Handler, error) {
		mu.Lock()
		defer mu.Unlock()
		if pages != nil {
			return pages, nil
		}
		c, err := configuration[C](ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errConfiguration, err)
		}
		h, err := build(context.WithoutCancel(ctx), *c)
		if err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
		pages = h
		return pages, nil
	}
	registered.Store(name, &Adapter{Name: name, reads: reflect.TypeFor[C]()})
	functions.HTTP(name, func(w http.ResponseWriter, r *http.Request) {
		drain := processDrain()
		accepted := drain.enter()
		defer drain.leave()
		if !accepted {
			drain.answer(w, http.StatusServiceUnavailable, "shutting down")
			return
		}
		h, err := built(r.Context())
		if err != nil {
			Log().ErrorContext(r.Context(), "function not configured", "function", name, "error", err.Error())
			drain.answer(w, http.StatusInternalServerError, err.Error())
			return
		}
		h.ServeHTTP(w, r)
		_ = http.NewResponseController(w).Flush() //nolint:errcheck // then the client is gone
	})
}
