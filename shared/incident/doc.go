// Package incident is the heart of Pitstop: the document of a workload, and the pure function that advances it.
//
// Everything that a function knows goes in as evidence, everything that should happen comes out as an event. Nothing
// here reads a clock, a network or a disk, so the same evidence always makes the same decision.
//
// # The document
//
// A workload has slots, one for each slice by its name. A slot has lives: the TPU that stands under the name now, and
// those before it that still matter. What is known of a life stands on it. The next life begins with what its own reading
// says, and with what its owner did since it began. Training may run in one life of a slot at most.
//
// # Transitions
//
// Where a workload stands is peace or the phase of its one open incident; where an incident ends the table names its
// outcome. A test explores the machine and holds the table against what it sees.
//
//	from         to           on
//	admitting    approving    Read
//	admitting    clearing     Called Cancelled Read
//	admitting    creating     Read
//	admitting    deleting     Read
//	admitting    escalated    Answered Forbidden Read Ticked
//	admitting    grace        Read
//	admitting    healing      Read
//	admitting    looking      Read
//	admitting    observed     Forbidden Read
//	admitting    released     Called Cancelled Read
//	admitting    resumed      Reported
//	admitting    resuming     Answered Reported
//	admitting    watching     Read
//	approving    admitting    Read
//	approving    clearing     Called Cancelled Read
//	approving    creating     Approved Read
//	approving    deleting     Approved Read Ticked
//	approving    escalated    Beat Read
//	approving    grace        Read
//	approving    healing      Approved Read Ticked
//	approving    looking      Approved Read
//	approving    maintaining  Approved Ticked
//	approving    observed     Read
//	approving    released     Called Cancelled Read
//	approving    restarting   Approved Ticked
//	approving    resumed      Beat Reported VerdictRead
//	approving    resuming     Noticed Read
//	approving    saving       Approved Ticked
//	approving    starting     Approved Ticked
//	approving    watching     Read
//	approving    window       Approved Noticed Read
//	approving    withdrawn    Noticed
//	clearing     admitting    Read
//	clearing     escalated    Beat Ended Forbidden Read Reported Ticked
//	clearing     observed     Beat Ended Read Reported Ticked
//	clearing     released     Ended Read Ticked
//	creating     admitting    Read
//	creating     approving    Forbidden Read
//	creating     clearing     Called Cancelled Forbidden Read Ticked
//	creating     deleting     Read Ticked
//	creating     escalated    Answered Forbidden Read Ticked
//	creating     grace        Read
//	creating     healing      Read
//	creating     looking      Read
//	creating     observed     Forbidden Read
//	creating     released     Called Cancelled Read
//	creating     resuming     Read
//	creating     watching     Read
//	deleting     admitting    Read
//	deleting     approving    Forbidden Read
//	deleting     clearing     Called Cancelled Forbidden Read Ticked
//	deleting     creating     Read
//	deleting     escalated    Answered Forbidden Read Ticked
//	deleting     grace        Read
//	deleting     healing      Read
//	deleting     looking      Read
//	deleting     observed     Forbidden Read
//	deleting     released     Called Cancelled Read
//	deleting     resuming     Read
//	deleting     watching     Read
//	discarding   admitting    Retried
//	discarding   escalated    Answered Beat Called Checked Forbidden Held Read Reported Ticked
//	discarding   looking      Retried
//	discarding   observed     Forbidden
//	discarding   released     Called Cancelled Read
//	discarding   resumed      Reported
//	discarding   resuming     Retried
//	discarding   watching     Retried
//	grace        admitting    Read
//	grace        approving    Read
//	grace        clearing     Called Cancelled Read
//	grace        creating     Read Ticked
//	grace        deleting     Read
//	grace        escalated    Read
//	grace        healing      Read
//	grace        looking      Read
//	grace        observed     Read
//	grace        released     Called Cancelled Read
//	grace        resuming     Read Ticked
//	grace        watching     Read
//	healing      admitting    Read
//	healing      approving    Read Ticked
//	healing      clearing     Called Cancelled Read
//	healing      creating     Read
//	healing      deleting     Read Ticked
//	healing      escalated    Read Ticked
//	healing      grace        Read
//	healing      looking      Read
//	healing      observed     Read
//	healing      released     Called Cancelled Read
//	healing      resumed      Beat VerdictRead
//	healing      resuming     Read
//	healing      starting     Ticked
//	healing      watching     Read Ticked
//	looking      admitting    Read
//	looking      approving    Read Ticked VerdictRead
//	looking      clearing     Called Cancelled Read
//	looking      creating     Read
//	looking      deleting     Read Ticked VerdictRead
//	looking      escalated    Read Ticked VerdictRead
//	looking      grace        Read
//	looking      healing      Read Ticked VerdictRead
//	looking      observed     Read
//	looking      released     Called Cancelled Read
//	looking      resumed      Beat Reported VerdictRead
//	looking      resuming     Read Ticked
//	looking      watching     Read Ticked
//	maintaining  approving    Forbidden Read
//	maintaining  creating     Read
//	maintaining  deleting     Read
//	maintaining  escalated    Read
//	maintaining  grace        Read
//	maintaining  healing      Read
//	maintaining  looking      Read
//	maintaining  observed     Forbidden Read
//	maintaining  released     Called Cancelled Read
//	maintaining  resumed      Beat VerdictRead
//	maintaining  resuming     Noticed
//	maintaining  watching     Read
//	maintaining  window       Answered Forbidden Noticed Read Ticked
//	maintaining  withdrawn    Noticed
//	peace        admitting    Retried Ticked
//	peace        approving    Noticed Read Ticked
//	peace        clearing     Read
//	peace        creating     Ticked
//	peace        deleting     Read
//	peace        discarding   Ticked
//	peace        healing      Read Ticked
//	peace        looking      Interrupted Read Reported Retried Ticked
//	peace        restarting   Ticked
//	peace        resuming     Reported Retried
//	peace        saving       Noticed Ticked
//	peace        starting     Ticked
//	peace        watching     Interrupted Noticed Read Reported Retried Ticked
//	peace        window       Noticed Ticked
//	restarting   admitting    Reported
//	restarting   approving    Forbidden Read
//	restarting   creating     Read
//	restarting   deleting     Read
//	restarting   escalated    Answered Forbidden Read Ticked
//	restarting   grace        Read
//	restarting   healing      Read
//	restarting   looking      Read
//	restarting   observed     Forbidden Read
//	restarting   released     Called Cancelled Read
//	restarting   resumed      Beat Reported VerdictRead
//	restarting   resuming     Answered Reported
//	restarting   watching     Read
//	resuming     approving    Beat Read Ticked VerdictRead
//	resuming     creating     Read
//	resuming     deleting     Read
//	resuming     escalated    Beat Read Ticked VerdictRead
//	resuming     grace        Read
//	resuming     healing      Read Ticked
//	resuming     looking      Read
//	resuming     observed     Read
//	resuming     released     Called Cancelled Read
//	resuming     restarting   Beat Ticked VerdictRead
//	resuming     resumed      Beat Checked Reported Ticked VerdictRead
//	resuming     watching     Read
//	saving       admitting    Noticed
//	saving       approving    Beat Checked Forbidden Read
//	saving       creating     Read
//	saving       deleting     Read
//	saving       escalated    Beat Read
//	saving       grace        Read
//	saving       healing      Read
//	saving       looking      Read
//	saving       maintaining  Checked
//	saving       observed     Forbidden Read
//	saving       released     Called Cancelled Read
//	saving       restarting   Beat VerdictRead
//	saving       resumed      Beat VerdictRead
//	saving       resuming     Noticed
//	saving       watching     Read
//	saving       window       Answered Checked Forbidden Interrupted Read Reported Ticked
//	saving       withdrawn    Noticed
//	starting     admitting    Read
//	starting     approving    Forbidden Read
//	starting     clearing     Called Cancelled Read
//	starting     creating     Read
//	starting     deleting     Read
//	starting     escalated    Answered Forbidden Read Ticked
//	starting     grace        Read
//	starting     healing      Read Ticked
//	starting     looking      Read
//	starting     observed     Forbidden Read
//	starting     released     Called Cancelled Read
//	starting     resumed      Beat VerdictRead
//	starting     resuming     Read
//	starting     watching     Read
//	watching     observed     Beat Called Cancelled Noticed Read Reported Ticked
//	window       admitting    Noticed Read Ticked
//	window       approving    Read Ticked
//	window       creating     Read
//	window       deleting     Read Ticked
//	window       escalated    Beat Read Ticked
//	window       grace        Read
//	window       looking      Read
//	window       observed     Read
//	window       released     Called Cancelled Read
//	window       restarting   Beat VerdictRead
//	window       resumed      Beat VerdictRead
//	window       resuming     Noticed Read Ticked
//	window       saving       Ticked
//	window       starting     Ticked
//	window       watching     Read
//	window       withdrawn    Noticed
//
// # Deadlines
//
// Every phase has a deadline, after which it falls back to another one or ends in escalated, with two exceptions that
// wait for as long as it takes: approving, for a person, and creating while capacity for Spot is what is missing. A deadline
// moves by the time for which the phase was held (a pause, the brake, a policy that cannot be read), HeldForMost in all.
//
// # Effects
//
// An effect is one thing that an incident wants of the outside: a save, a deletion, an admission. A request asks a function
// for it. The function stores its intent before the call and the answer after it, and a reading shows that it is so. In
// between an effect is wanted, begun, accepted or done, or it was refused and waits for its next try. An answer counts for
// the attempt that it answers alone.
//
// Effects stand on the workload, each with the incident that wants it. Their fence is the workload's epoch, which rises
// when an incident opens or ends and whenever a new request is sent. A request that is fenced out although its effect is
// still wanted is sent again.
//
// # Readings
//
// What is known may not suffice for the next decision. Reads says what somebody has to go and read then, and why: the slices
// themselves, the host names of their workers, what their crews write in guest attributes, the audit log, an operation. Patrol reads
// what it says at each tick, and recreate right before it deletes idle slices. They only read; what follows is decided here.
package incident
