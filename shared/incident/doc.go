//go:build !heart

// Package incident is the heart of Pitstop: the document of a workload, and the pure function that advances it.
//
// Everything that a function knows goes in as evidence, everything that should happen comes out as an event. Nothing
// here reads a clock, a network or a disk, so the same evidence always makes the same decision.
//
// # The document
//
// A workload has slots, one for each slice by its name. A slot has lives: the TPU that has the name now, and the earlier ones that
// still matter. The known facts about a life are stored with it. The next life begins with the facts in its own reading, and with
// its owner's acts since it began. Training may run in only one life of a slot.
//
// # Where to look
//
//	what an open incident waits for             phase in phase.go
//	what follows from a slice's situation       reactIn in situation.go
//	how long the provider may heal it           healedBy in replace.go
//	what follows when it has not healed         unhealed in tick.go
//	what its owner's acts mean                  called in owner.go
//	whether a slice that is gone was lost       knowsWhyGone in look.go, waitForWord in replace.go
//	what a planned end does                     planEnds, endedUnseen and payer in ends.go, openMaintenance in maintenance.go
//	what a provider's slices do by themselves   provider in words.go
//	why a slice opens no incident               whyLeftAlone in owner.go
//	why a lost slice is not replaced            lose, replace, overspends and irreplaceable in replace.go
//	why a call waits                            hold in advance.go
//	which attempt counts                        countAttempt in effect.go, outdated and tooFar in attempt.go
//	who may train                               Admitted and markAdmitted in slot.go, admitOnceReady in replace.go
//	what would follow                           IfLost and rehearse in plan.go
//	what somebody has to go and read            Reads in reads.go
//	what a failed call means                    failed in effect.go
//	when a call is tried again                  askAgain in tick.go, retryLater in effect.go, zoneRefused in zones.go, backoff in phase.go
//	what charges a budget                       chargeReplacement in replace.go, chargeRestart in training.go
//	what refills a budget, or gives it back     proven in verdict.go, uncharge in effect.go, attribute in advance.go, retried in operator.go
//	what a reason in one word means             Codes in package reason
//	how long a phase lasts                      lasts in advance.go
//	what is done when time is up                overdueIn in tick.go
//
// # What follows
//
// A slice is in a situation: it serves, cannot be used, is stopped, lost or gone. The situation and the incident's phase decide
// what follows. Without an incident the workload is at peace. What follows depends on the policy, on proof and on the other slices
// too, so a row may have several answers: the phase that the incident enters, or the outcome with which it ends. Where only the
// passing of time leads on, the row says time. A test explores the machine and writes this table. Situations that change nothing
// have no row.
//
//	while         a slice is    then
//	admitting     gone          creating grace looking
//	admitting     lost          approving deleting healing looking watching
//	admitting     stopped       healing
//	admitting     time          escalated
//	admitting     unusable      healing
//	approving     gone          creating escalated grace looking watching
//	approving     lost          deleting healing looking watching
//	approving     serving       admitting resuming
//	approving     stopped       healing released window
//	approving     time          deleting healing maintaining restarting saving starting
//	approving     unusable      window
//	clearing      gone          escalated observed released
//	clearing      time          escalated observed released
//	creating      lost          approving clearing deleting healing looking watching
//	creating      serving       admitting clearing deleting escalated grace healing resuming
//	creating      stopped       clearing deleting escalated grace healing released
//	creating      time          clearing deleting escalated
//	deleting      gone          creating grace
//	deleting      lost          approving clearing looking watching
//	deleting      serving       admitting clearing creating grace healing resuming
//	deleting      stopped       creating escalated grace healing released
//	deleting      time          clearing escalated
//	grace         gone          approving creating looking watching
//	grace         lost          approving deleting escalated healing looking watching
//	grace         serving       admitting healing resuming
//	grace         stopped       healing
//	grace         time          creating deleting escalated
//	grace         unusable      healing
//	healing       gone          approving creating deleting escalated grace looking watching
//	healing       lost          approving deleting escalated looking watching
//	healing       serving       admitting resuming
//	healing       stopped       released
//	healing       time          approving deleting escalated starting watching
//	looking       gone          approving creating deleting escalated grace watching
//	looking       lost          approving deleting escalated grace healing watching
//	looking       serving       admitting approving deleting resuming watching
//	looking       stopped       approving deleting grace healing released watching
//	looking       time          approving creating deleting escalated grace healing resuming watching
//	looking       unusable      approving deleting grace healing watching
//	maintaining   gone          creating grace
//	maintaining   lost          approving deleting healing looking watching
//	maintaining   stopped       window
//	maintaining   time          window
//	maintaining   unusable      window
//	peace         gone          approving creating looking watching
//	peace         lost          approving deleting healing looking watching
//	peace         time          admitting approving creating grace healing looking restarting saving starting watching window
//	restarting    gone          creating escalated grace
//	restarting    lost          approving deleting escalated healing looking watching
//	restarting    stopped       healing
//	restarting    time          escalated
//	restarting    unusable      healing
//	resuming      gone          approving creating escalated grace looking
//	resuming      lost          approving deleting escalated healing looking watching
//	resuming      stopped       healing released
//	resuming      time          approving escalated restarting resumed
//	resuming      unusable      healing
//	saving        gone          approving creating escalated grace looking
//	saving        lost          approving deleting escalated healing looking watching
//	saving        stopped       released window
//	saving        time          window
//	saving        unusable      window
//	starting      gone          approving creating escalated grace looking watching
//	starting      lost          approving deleting healing looking watching
//	starting      serving       admitting healing resuming
//	starting      time          escalated healing
//	watching      gone          creating grace observed
//	watching      lost          approving deleting escalated healing looking
//	watching      serving       observed
//	watching      stopped       healing observed
//	watching      time          observed saving
//	watching      unusable      healing
//	window        gone          approving creating escalated grace looking
//	window        lost          approving deleting escalated looking watching
//	window        serving       admitting resuming
//	window        time          admitting approving deleting escalated healing resuming saving starting
//
// # Phases
//
// A phase is what the open incident waits for. It follows from the facts and the effects in the document: an effect under way names
// its own phase, and without one the slices do. The document has the phase's name for people, and no decision reads it. A step that
// leaves other facts than it meant to is settled at its end: a slice that is gone comes before one that heals, and both come before
// the training.
//
// # Deadlines
//
// Every phase has a deadline, after which it falls back to another one or ends in escalated, with two exceptions that wait for as
// long as it takes: approving, for a person, and creating, while Spot capacity is missing. A deadline moves by the time for which
// the phase was held (a pause, the brake, a policy that cannot be read), but by no more than HeldForMost in all.
//
// # Effects
//
// An effect is one change that an incident wants outside: a save, a deletion, an admission. A request asks a function for it. The
// function stores its intent before the call and the answer after it, and a reading proves the change. Until then an effect is
// wanted, begun, accepted or done, or it was refused and waits for its next try. An answer counts only for its own attempt.
//
// Effects stand on the workload, each with the incident that wants it. Their fence is the workload's epoch, which rises
// when an incident opens or ends and whenever a new request is sent. A request that is fenced out although its effect is
// still wanted is sent again.
//
// # Readings
//
// The known facts may not suffice for the next decision. Then Reads lists the facts that somebody has to go and read, and why: the
// slices themselves, the host names of their workers, what their crews write in guest attributes, the audit log, an operation.
// Patrol reads them at each tick. It only reads; this package decides.
package incident
