// Package fault sorts errors by what redelivery can do about them. What is not classified is transient: it is
// delivered again and dead-lettered at last, so nothing is lost by not knowing.
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

// Permanent marks an error that no redelivery can cure: the message is acknowledged and the error logged.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &class{error: err, kind: permanent}
}

// Permanentf is Permanent of a formatted error.
func Permanentf(format string, args ...any) error { return Permanent(fmt.Errorf(format, args...)) }

// Ignored marks a message that is none of our concern, and why, in one word (see incident.Code) and in plain ones: it is
// acknowledged without an error.
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

// Busy marks an error that the sender should try again soon, and that says nothing against the message: a newer
// release has to read it, or the instance is shutting down. It is answered 503.
func Busy(err error) error {
	if err == nil {
		return nil
	}
	return &class{error: err, kind: busy}
}

// IsPermanent reports whether no redelivery can cure the error.
func IsPermanent(err error) bool { return is(err, permanent) }

// IsIgnored reports whether the message was none of our concern.
func IsIgnored(err error) bool { return is(err, ignored) }

// IsBusy reports whether somebody else, or we later, can handle the message.
func IsBusy(err error) bool { return is(err, busy) }

// is reports whether the outermost mark in the chain of err is k: whoever marks an error last knows most about it.
func is(err error, k kind) bool {
	var c *class
	return errors.As(err, &c) && c.kind == k
}
