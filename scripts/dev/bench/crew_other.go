//go:build !linux

package main

import "context"

const traineeArgument = "crew-trainee"

func trainee() {}

// benchCrew measures nothing: the machines of a TPU run Linux.
func benchCrew(context.Context) ([]figure, error) { return nil, nil }
