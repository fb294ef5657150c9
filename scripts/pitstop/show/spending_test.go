package show

import (
	"context"
	"testing"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
)

// TestCheckAndStatusSayWhatIsLeftOfTheBudget: check always, status once less than a fifth is left.
func TestCheckAndStatusSayWhatIsLeftOfTheBudget(t *testing.T) {
	for limit, c := range map[string]struct{ check, status string }{
		"5000 USD a week": {"good      budget: 384.00 of 5000 USD a week are spent, 4616.00 are left\n", ""},
		"500 USD a week":  {"good      budget: 384.00 of 500 USD a week are spent, 116.00 are left; at 8.00 an hour the budget is passed by 2026-11-22 03:00 UTC\n", ""},
		"400 USD a week":  {"warn      budget: 384.00 of 400 USD a week are spent, 16.00 are left", "budget    384.00 of 400 USD a week are spent, 16.00 are left"},
		"100 USD a week":  {"warn      budget: 384.00 of 100 USD a week are spent: Pitstop asks before it replaces a slice", "if llama-8b died now: wait for approval: recreate llama-8b"},
	} {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.ReadFile = func(context.Context, string) ([]byte, error) {
			return []byte("policies: {night: {preset: spot, chip_hour_price: 0.5, spend_at_most: " + limit + "}}"), nil
		}
		b.Want([]string{"check", "llama-8b"}, c.check)
		b.Want([]string{"status", "llama-8b"}, c.status)
	}
}
