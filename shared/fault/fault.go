// Package fault sorts errors by whether redelivery can help. An unclassified error is transient: the message is delivered
// again and finally dead-lettered, so an unknown error loses no message.
package fault

import (
	"errors"
	"fmt"
)

type class struct {
	error
	kind kind
	code string
}

type kind int

const (
	permanent kind = iota + 1
	ignored
	busy
)

func (c *class) Unwrap() error { return c.error }

// Permanent marks an error that redelivery cannot cure: the message is acknowledged and the error logged.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &class{error: err, kind: permanent}
}

// Permanentf is Permanent with a formatted error.
func Permanentf(format string, args ...any) error { return Permanent(fmt.Errorf(format, args...)) }

// Ignored marks a message that this function must not act on, with the reason as one word (see incident.Code) and as plain
// text. It is acknowledged without an error.
func Ignored[C ~string](code C, format string, args ...any) error {
	return &class{error: fmt.Errorf(format, args...), kind: ignored, code: string(code)}
}

// Code is why a message was ignored, in one word; empty for every other error.
func Code(err error) string {
	var c *class
	if !errors.As(err, &c) {
		return ""
	}
	return c.code
}

// Busy marks an error that is not the message's fault, so the sender should try again soon: a newer release must read it, or
// the instance is shutting down. The answer is 503.
func Busy(err error) error {
	if err == nil {
		return nil
	}
	return &class{error: err, kind: busy}
}

// IsPermanent reports whether redelivery cannot cure the error.
func IsPermanent(err error) bool { return is(err, permanent) }

// IsIgnored reports whether the message was ignored.
func IsIgnored(err error) bool { return is(err, ignored) }

// IsBusy reports whether another instance, or this one later, can handle the message.
func IsBusy(err error) bool { return is(err, busy) }

// is reports whether the outermost mark in the chain of err is k: the last caller to mark an error knows most about it.
func is(err error, k kind) bool {
	var c *class
	return errors.As(err, &c) && c.kind == k
}
