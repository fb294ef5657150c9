package world

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// tpuAPI is the simulated Cloud TPU API as the functions call it: directly, or over the wire, through the clients: HTTP
// and JSON, and gRPC to legacy nodes. The same seed makes the same calls with the same ends both ways.
func (w *World) tpuAPI(ctx context.Context) (provider.Provider, error) {
	var versions cloudtpu.Config
	if slices.ContainsFunc(w.Fleet, func(c SliceConfig) bool { return c.Legacy }) {
		versions.LegacyZones = w.Zones()
	}
	faulty := w.Hooks.Cloud
	if faulty == nil {
		faulty = func(_ context.Context, _ cloudtputest.Request, next func() error) error { return next() }
	}
	around := func(ctx context.Context, r cloudtputest.Request, next func() error) error {
		w.called(ctx, Call{Service: "tpu", Method: restMethod(r.Method, r.Path)})
		return faulty(ctx, r, next)
	}
	if w.Opts.Wire || w.Hooks.API != nil {
		tpus := through(w.Hooks.API, overWire(around, w.API.Transport()))
		clients := cloudtpu.Clients{Present: []option.ClientOption{option.WithHTTPClient(&http.Client{Transport: tpus}), option.WithoutAuthentication()}}
		if versions.LegacyZones != nil {
			ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
			w.stores = append(w.stores, closer(cancel))
			conn, err := w.API.Connect(ctx, around)
			if err != nil {
				return nil, err
			}
			clients.Former = []option.ClientOption{option.WithGRPCConn(conn)}
		}
		return versions.OpenWith(ctx, clients)
	}
	return versions.Over(w.API.Direct(func(ctx context.Context, r cloudtputest.Request, next func() error) error {
		err := around(ctx, r, next)
		if f, ok := errors.AsType[Refusal](err); ok && !strings.HasPrefix(r.Path, "/v1/") { // the client of v1 takes it as it is
			return googleapi.CheckResponse(f.Answer(nil)) //nolint:bodyclose // it is in memory
		}
		return err
	})), nil
}

// closer is what ends when it is closed.
type closer func()

// Close implements io.Closer.
func (c closer) Close() error {
	c()
	return nil
}

// overWire makes the calls that go over HTTP pass around.
func overWire(around cloudtputest.Around, inner http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (resp *http.Response, err error) {
		call := cloudtputest.Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery}
		if r.Body != nil {
			if call.Body, err = io.ReadAll(r.Body); err != nil {
				return nil, err
			}
			r = r.Clone(r.Context())
			r.Body = io.NopCloser(bytes.NewReader(call.Body))
		}
		err = around(r.Context(), call, func() (err error) {
			resp, err = inner.RoundTrip(r) //nolint:bodyclose // the client closes what it gets
			return err
		})
		if f, ok := errors.AsType[Refusal](err); ok {
			return f.Answer(r), nil
		}
		if err != nil && resp != nil {
			return nil, errors.Join(err, resp.Body.Close())
		}
		return resp, err
	})
}
