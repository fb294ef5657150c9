package main

import (
	"context"
	"errors"

	"pitstop.internal/shared/publish"
)

func pubsubEmulator(context.Context) (string, func(), error)                { return "", nil, errors.New("todo") }
func firestoreEmulator(context.Context) (func(), error)                     { return nil, errors.New("todo") }
func emulatorPublisher(context.Context, string) (*publish.Publisher, error) { return nil, nil }
