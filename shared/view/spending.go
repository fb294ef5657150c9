package view

import (
	"fmt"
	"time"
)

// Spending is what a workload has cost of the budget of its policy, in dollars at the policy's prices.
type Spending struct {
	// Limit is the budget as the policy has it, such as 200 USD a week; Dollars is its amount.
	Limit   string  `json:"limit"`
	Dollars float64 `json:"limit_dollars"`
	// Spent is what was spent in the last 24 hours, or in the last 7 days. Hourly is what an hour of the chips costs that stand now.
	Spent  float64 `json:"spent_dollars"`
	Hourly float64 `json:"hourly_dollars"`
	// PassedAt is when the budget is passed if the same chips go on, to the hour; zero for never.
	PassedAt time.Time `json:"passed_at,omitzero"`
}

// Left is what is left of the budget; below zero where it is passed.
func (s Spending) Left() float64 { return s.Dollars - s.Spent }

// RunsLow reports whether less than a fifth is left.
func (s Spending) RunsLow() bool { return s.Left() < s.Dollars/5 }

// String says what is spent and left, and when the budget is passed.
func (s Spending) String() string {
	text := fmt.Sprintf("%.2f of %s are spent", s.Spent, s.Limit)
	if s.Left() < 0 {
		return text + ": Pitstop asks before it replaces a slice"
	}
	text += fmt.Sprintf(", %.2f are left", s.Left())
	if !s.PassedAt.IsZero() {
		text += fmt.Sprintf("; at %.2f an hour the budget is passed by %s", s.Hourly, s.PassedAt.UTC().Format("2006-01-02 15:04 UTC"))
	}
	return text
}
