// Package incident decides. The document of a workload holds the known facts, the calls under way and what people were told. Advance takes one
// piece of evidence into it, and says what to send. Nothing here reads a clock, a network or a disk, so the same evidence always makes the
// same decision.
//
// # One decision, in five stages
//
//	record    facts (record*.go)        merges evidence into the facts; sees no policy and no plan, and decides nothing
//	diagnose  diagnosis (diagnosis.go)  says how each slot stands, and until when its provider may heal it; is never stored
//	plan      rules (plan.go)           the first rule that has a Step decides; a rule writes nothing
//	follow    effects (effects.go)      makes what is under way what the Step wants; chooses nothing
//	tell      teller (tell.go)          writes the Step into the story if it is another one than was told last
//
// A rule is a file, rule_*.go: when it applies, which calls it wants, how long it waits, and why. The order of the rules is the list in
// plan.go. No phase and no deadline is stored to be moved: an incident waits for what the rule says that won. Its wait ends at the time of a
// fact plus a span (clock.go). Time in which calls are held back does not count.
//
// # Where do I change ...
//
//	why nothing is done about a slice        whyNothing in why.go, as far as no policy is asked; each slice shows it
//	when an incident opens                   openings in opens.go: an ordered list, as the rules are
//	how a slot stands, what counts as lost   situationOf in diagnosis.go
//	how long the provider may heal it        healFor in diagnosis.go; from when: healedBy
//	what an owner's acts mean                rule_owner.go
//	when a lost slice is made again          rule_replace.go
//	where it is made again                   place.go
//	what the policy allows, and who is asked allowed.go
//	when training is let in, and where       rule_admit.go, lease.go
//	when the training is restarted           rule_crash.go
//	what proves that it goes on              rule_progress.go
//	what maintenance leads to                rule_maintenance.go
//	how long before a window is saved        lead in lead.go
//	how often the training saves             savePace in training.go
//	what is cleaned up                       rule_cleanup.go
//	when a call is made again                effects.go, backoff in record_call.go
//	what charges a budget, or pays it back   budget.go
//	what refills it                          proves in record_crew.go; a person's retry, and another directory
//	when people hear of a wait again         remind in tell.go
//	a sentence of the story                  story/english.go; what a trouble says of itself stands where it is found
//	what would follow                        forecast.go
package incident
