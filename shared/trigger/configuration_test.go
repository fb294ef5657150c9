package trigger_test

import (
	"context"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/trigger"
)

type part struct {
	Topic string `env:"TOPIC, required"`
	Limit int    `env:"LIMIT, default=3"`
}

type whole struct {
	Part  part
	Names []string `env:"NAMES,required"`
	Mode  string   `env:"MODE"`
	Topic string   `env:"TOPIC, required"`
	other string   //nolint:unused // a field without a tag is not read
}

func TestTheVariablesOfAFunctionAreThoseOfItsConfiguration(t *testing.T) {
	trigger.Register("HandleVariables", trigger.Function[whole, string]{
		Decode: func(cloudevents.Event) (string, error) { return "", nil },
		Build:  func(context.Context, whole) (func(context.Context, string) error, error) { return nil, nil },
	})
	got, err := trigger.Variables("HandleVariables")
	must(t, err)
	want := []trigger.Variable{
		{Name: "LIMIT"}, {Name: "LOG_LEVEL"}, {Name: "MODE"}, {Name: "NAMES", Required: true}, {Name: "TOPIC", Required: true},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if _, err := trigger.Variables("HandleNobody"); err == nil {
		t.Error("an entry point that nobody registered has variables")
	}
}
