package reason

// SaveResult is how a save ended.
type SaveResult string

// The ends of a save, best first.
const (
	SaveVerified    SaveResult = "verified"    // complete and verified in time
	SaveLate        SaveResult = "late"        // complete and verified after its deadline: it counts as progress
	SaveIncomplete  SaveResult = "incomplete"  // acknowledged, but not complete or not visible in time
	SaveUnanswered  SaveResult = "unanswered"  // delivered to the crew, which has not answered in time
	SaveRefused     SaveResult = "refused"     // the crew cannot save, and says why
	SaveUndelivered SaveResult = "undelivered" // it could not be delivered
	SaveForbidden   SaveResult = "forbidden"   // the policy does not allow the request
	SaveUnheard     SaveResult = "unheard"     // no crew is there to answer
	SaveOvertaken   SaveResult = "overtaken"   // something else happened first
)

// Code is the end of a save as a reason.
func (r SaveResult) Code() Code { return Code("save_" + r) }
