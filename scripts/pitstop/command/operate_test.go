package main

import (
	"testing"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/view"
)

// TestAnIncidentOfTwoProjectsIsNamedWithItsOwn: an incident's ID does not say the project, so nobody's incident is taken for
// another's.
func TestAnIncidentOfTwoProjectsIsNamedWithItsOwn(t *testing.T) {
	const id = "llama-8b-20261121-3"
	theirs := deploymenttest.Asking(func(s *deploymenttest.Story) { s.ID, s.Project = "apart/llama-8b", "apart" })
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Asking(), theirs)
	b.Allows("recreate,restart")
	for _, verb := range []string{"incident", "approve", "cancel"} {
		b.Refused([]string{verb, id}, "may be apart/llama-8b/"+id+" (open) or demo/llama-8b/"+id+" (open)")
		b.Refused([]string{verb, "nobody/" + id}, "there is no incident")
	}
	b.Want([]string{"incident", "apart/" + id}, "workload apart/llama-8b")
	b.Want([]string{"approve", "demo/" + id}, "demo/llama-8b: approved by ada@example.com")
	b.Want([]string{"cancel", "demo/llama-8b/" + id}, "demo/llama-8b: cancelled by ada@example.com")
	// One that is over may still be the one that is meant.
	b.Refused([]string{"cancel", id}, "may be apart/llama-8b/"+id+" (open) or demo/llama-8b/"+id+" (released)")
	w, _, err := b.Ledger.Workload(t.Context(), theirs.ID)
	if err != nil || w.Incident == nil || w.Shown(deploymenttest.Noon).Incident.Phase != view.Approving || len(w.Orders) > 0 {
		t.Errorf("the other project's stands at %+v, %v", w.Incident, err)
	}
	b.Want([]string{"cancel", "apart/" + id}, "apart/llama-8b: cancelled by ada@example.com")
}
