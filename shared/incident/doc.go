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
// No phase and no deadline is stored to be moved: an incident waits for what the rule says that won. Its wait ends at the time of a fact plus a
// span (clock.go). Time in which calls are held back does not count. The intent of a call makes the plan again, right before the call.
//
// # The rules, in the order of their weight
//
//	stop for abuse             where the provider suspects abuse, all automation ends
//	clean up                   what is ending deletes what its own calls made, and what nobody waits for
//	clear what came late       so does an incident that was opened for what came late of another one
//	leave it to a person       what a person has cancelled, or only a person may decide, ends here
//	leave it to its owner      what its owner deleted, stopped or made again is theirs
//	the training is finished   nothing is brought back for a training that is done
//	only watch                 where the policy allows nothing, it is followed to its end
//	replace what is lost       it is deleted, and created again in the first place that may have it
//	start what is stopped      unless its owner stopped it
//	ask who deleted it         what is gone without a reason waits for word of its owner, and then of the audit log
//	look                       what only a log tells waits for a reading
//	let its provider heal it   what may come back by itself has its time
//	prepare for maintenance    a save before it, and an early start where that is allowed; then it passes
//	move back                  from another shape or capacity, where the policy says so and a save is verified
//	admit                      the lease names the new lives, once every slice can be used and nobody else trains
//	progress proves it         a step past the last save ends the incident
//	the training stands still  crews are heard first; then it is told, or begun again
//	restart the training       what gave up has another attempt, within its budgets
//	wait for progress          until then
//
// # Where is it decided ...
//
//	when an incident opens                 opens.go, an ordered list as the rules are
//	what counts as lost, and until when    diagnosis.go: situationOf, healFor, healedBy
//	  its provider may heal it
//	what the policy allows, who is asked   allowed.go
//	what is replaced, and where            rule_replace.go, place.go; a zone that preempts, left.go; the way back,
//	                                         rule_back.go
//	who may train, in which attempt        rule_admit.go, rule_crash.go, lease.go
//	what maintenance leads to, and when    rule_maintenance.go; how long before, lead.go and training.go
//	what a wait for capacity says          capacity.go
//	what a call costs, and what pays back  budget.go
//	what may be spent on chips             spend.go
//	when a call is made again, or given up effects.go, record_call.go, patience.go
//	what people hear, and when again       tell.go; the sentences, story/english.go
//	what would follow, why nothing does    forecast.go, why.go
package incident
