package notify

import (
	"bytes"
	"flag"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

var update = flag.Bool("update", false, "write the golden files again")

// at is when everything happens here.
var at = time.Date(2026, 11, 12, 2, 14, 8, 0, time.UTC)

// told is an update with everything that the course of a preemption has in the beginning.
func told(change ...func(*events.IncidentUpdated)) events.IncidentUpdated {
	u := events.IncidentUpdated{
		Schema: 1, Workload: "demo/llama-8b", Incident: "llama-8b-20261112-3", Number: 3, At: at.Add(2 * time.Minute), Opened: at,
		Cause: events.CausePreemption, Policy: "night", Phase: "deleting", Chips: 16, ChipHourPrice: 1.2, Cost: events.Cost{AwaySeconds: 121, AtLeast: true, ChipHours: 16 * 121. / 3600, Dollars: 1.2 * 16 * 121 / 3600},
		Slices:   []events.Affected{{Name: "llama-8b", Zone: "us-west4-a", Accelerator: "v5litepod-16", Spot: true}},
		Happened: []string{"worker 2 was preempted", "node llama-8b is PREEMPTED"},
		Doing:    "recreate: delete llama-8b first", Why: "Spot, loss proven, checkpoint 48,190 verified 6 m 2 s ago",
	}
	for _, c := range change {
		c(&u)
	}
	return u
}

func phase(name string) func(*events.IncidentUpdated) {
	return func(u *events.IncidentUpdated) { u.Phase = name }
}

// waits is the word of a long wait while no incident is open.
func waits() events.IncidentUpdated {
	began := at.Add(-time.Hour)
	w, _, _ := incident.Advance(policy.Policy{Name: "night"}, incident.New("demo", "llama-8b", "gke"), evidence.Read{
		Origin: evidence.Origin{Time: began, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-east5/research/teams", Condition: evidence.Creating,
		Incarnation: events.Incarnation{Zone: "us-east5/research/teams", ID: "uid", Created: began},
		State:       "creating: its Pod llama-8b-0 waits for a machine: Unschedulable: Insufficient google.com/tpu",
		Facts:       evidence.Facts{Label: "night", Accelerator: "tpu-v6e-slice 4x4", Chips: 16, WaitsSince: began},
	}, began)
	now := at.Add(2 * time.Minute)
	told, _, _ := incident.Advance(policy.Policy{Name: "night"}, w, evidence.Ticked{Origin: evidence.Origin{Time: now, Rank: events.RankReading}}, now)
	return incident.Updates(w, told, now)[0]
}

func ends(outcome string) func(*events.IncidentUpdated) {
	return func(u *events.IncidentUpdated) {
		u.Phase, u.Outcome, u.At, u.Doing = "closed", outcome, at.Add(18*time.Minute), outcome
		u.Cost = events.Cost{AwaySeconds: 1081, AgainSteps: 23, AgainSeconds: 184, ChipHours: 16 * 1265. / 3600, Dollars: 1.2 * 16 * 1265 / 3600}
	}
}

// messages are one of each kind that there is.
func messages() map[string]Message {
	one := func(u events.IncidentUpdated) Message { return Message{Updates: []events.IncidentUpdated{u}} }
	evil := "<!channel> <https://example.com|click> *bold* _it_ `x` <b>&amp;</b> <users/all> :tada: \"q\" \u202eevil\u0000 \xff\n\nnext line"
	m := map[string]Message{
		"deleting": one(told()),
		"waiting": one(told(phase("creating"), func(u *events.IncidentUpdated) {
			u.Waiting, u.Doing, u.Why = at, "keep asking for capacity", "1 h 0 m by now: no capacity in us-west4-a"
		})),
		"long-wait": one(waits()),
		"approving": one(told(phase("approving"), func(u *events.IncidentUpdated) {
			u.Asked, u.Doing, u.Why, u.ChipHourPrice = events.ActionDelete, "wait for approval: recreate llama-8b", "the policy says ask", 0
			u.Cost.Dollars = 0
		})),
		"saving": one(told(phase("saving"), func(u *events.IncidentUpdated) {
			u.Cause, u.Cost, u.Happened = events.CauseMaintenance, events.Cost{}, []string{"maintenance of llama-8b from 06:00 to 10:00"}
			u.Doing, u.Why, u.Policy = "request a save", "the window begins in 20 m 0 s", ""
		})),
		"resumed": one(told(ends("resumed"), func(u *events.IncidentUpdated) {
			u.ConfirmedBy, u.Doing, u.Why = "step", "resumed, confirmed by step · away 18 m 1 s", "step 48,213 > 48,190"
			u.Job.State = events.JobRunning
		})),
		"escalated": one(told(ends("escalated"), func(u *events.IncidentUpdated) {
			u.IdleChips, u.Why, u.Code, u.Advice = 16, "no progress within 30 m 0 s", "no_progress", "look at the training's log, then restart it"
			u.Job = events.JobTerms{
				State: events.JobFailed, Retries: events.JobRetries{Worker: 5, Job: 3},
				Error: events.JobError{Code: 3, Status: "INVALID_ARGUMENT", Message: "The replica worker 0 exited with a non-zero status of 137. Termination reason: Error."},
			}
		})),
		"escalated-unpriced": one(told(ends("escalated"), func(u *events.IncidentUpdated) { u.IdleChips, u.ChipHourPrice, u.Cost.Dollars = 16, 0, 0 })),
		"observed":           one(told(ends("observed"), func(u *events.IncidentUpdated) { u.Why, u.Policy = "the policy allows nothing", "" })),
		"evil": one(told(ends("escalated"), func(u *events.IncidentUpdated) {
			u.Workload, u.Happened, u.Doing, u.Why, u.Advice, u.Policy = "demo/"+evil, []string{evil}, evil, evil, evil, evil
			u.Slices[0].Name = evil
			u.Job = events.JobTerms{State: events.JobFailed, Error: events.JobError{Code: 13, Status: "INTERNAL", Message: evil}}
		})),
	}
	again := m["resumed"]
	again.Again = true
	m["resumed-again"] = again
	var many []events.IncidentUpdated
	for i := range 30 {
		n := func(u *events.IncidentUpdated) {
			u.Workload = "demo/w" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		}
		switch {
		case i%10 == 9:
			many = append(many, told(ends("escalated"), n))
		case i%3 == 0:
			many = append(many, told(ends("resumed"), n, func(u *events.IncidentUpdated) { u.ConfirmedBy = "step" }))
		default:
			many = append(many, told(n))
		}
	}
	m["digest"] = Message{Updates: many}
	return m
}

// TestTexts holds what each target is sent of each kind of message.
func TestTexts(t *testing.T) {
	for name, m := range messages() {
		v := m.wording()
		for target, body := range map[string]any{"slack": slackMessage(v), "chat": chatMessage(v)} {
			got, err := json.Marshal(body, jsontext.WithIndent("  "))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+"."+target+".json", append(got, '\n'))
		}
	}
	for _, f := range names(t) {
		name, _, _ := strings.Cut(f, ".")
		if _, ok := messages()[name]; !ok {
			t.Errorf("nothing is held against %s", f)
		}
	}
}

func names(t *testing.T) (all []string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, filepath.Base(f))
	}
	return all
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got); go test -update writes it again:\n%s", name, d)
	}
}

// TestEveryPlaceInTheCourseOfAnIncidentHasWords: people do not read the names of phases.
func TestEveryPlaceInTheCourseOfAnIncidentHasWords(t *testing.T) {
	unsaid := []string{"looking", "maintaining", "admitting", "restarting"} // they pass, and are not told
	for _, p := range view.Phases() {
		if to := string(p); state(told(phase(to))) == to && !slices.Contains(unsaid, to) {
			t.Errorf("no words for %s", to)
		}
	}
	for _, o := range view.Outcomes() {
		if to := string(o); !stands(to) || state(told(ends(to))) == to {
			t.Errorf("no words for the end %s, or it is none", to)
		}
	}
}

// outside makes an update of which every text is from outside.
func outside(text string, n int) Message {
	u := told(func(u *events.IncidentUpdated) {
		u.Workload, u.Incident, u.Happened, u.Doing, u.Why, u.Advice, u.Policy = text, text, []string{text, text}, text, text, text, text
		u.Cause, u.Phase, u.Outcome, u.ConfirmedBy = events.Cause(text), text, text, text
		u.Slices = []events.Affected{{Name: text, Zone: text, Accelerator: text}}
		u.Job = events.JobTerms{State: events.JobFailed, Error: events.JobError{Code: 2, Status: "UNKNOWN", Message: text}}
	})
	if n%3 == 1 {
		u.Outcome, u.IdleChips = "escalated", n
	}
	m := Message{Again: n%2 == 0, Updates: []events.IncidentUpdated{u}}
	for range n % 7 {
		m.Updates = append(m.Updates, u)
	}
	return m
}

func seeds(f *testing.F) {
	f.Helper()
	for _, s := range []string{
		"", "worker 2 was preempted", "<!channel> <@U123> <https://x|y> *b* _i_ ~s~ `c` &amp; &lt;", "<users/all> <b>x</b> <a href=\"x\">",
		strings.Repeat("<", 5000), strings.Repeat("&", 5000), strings.Repeat("\U0001F600", 3000), "\u202e\u200b\u0000\n\r\t\xff\xfe",
		"\x1b[2J\u009b31m\u0085\x7f\u2066\u2069\u200f\u061c\u2028\u2029\ufeff\U000e0041", `"}],"x":[{"`,
	} {
		f.Add(s, 1)
		f.Add(s, 6)
	}
	f.Add(" ", -35) // a row of which nothing is left once it is folded
}

// FuzzSlack: whatever a text holds, it stands in plain texts alone, nothing in it begins markup, and no limit is passed.
func FuzzSlack(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n int) {
		data, err := json.Marshal(slackMessage(outside(text, max(0, n%100)).wording()))
		if err != nil {
			t.Fatal(err)
		}
		checkSlack(t, data)
	})
}

func checkSlack(t *testing.T, data []byte) {
	t.Helper()
	var b slackBody
	if err := json.Unmarshal(data, &b, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	literal(t, b.Text, slackText)
	if strings.ContainsAny(b.Text, "*_~`") {
		t.Errorf("%q is read as markup", b.Text)
	}
	if n := len(b.Blocks); n < 1 || n > slackBlocks {
		t.Errorf("%d blocks, and %d is the most", n, slackBlocks)
	}
	for _, block := range b.Blocks {
		var parts []slackPart
		most := slackField
		switch block.Type {
		case "header":
			parts, most = []slackPart{*block.Text}, slackHeader
		case "section":
			parts = block.Fields
			if len(parts) > 10 {
				t.Errorf("%d fields, and 10 is the most", len(parts))
			}
		case "context":
			parts = block.Elements
			if len(parts) > 10 {
				t.Errorf("%d elements, and 10 is the most", len(parts))
			}
		default:
			t.Errorf("a block %q", block.Type)
		}
		for _, p := range parts {
			switch p.Type {
			case "plain_text":
				if p.Emoji == nil || *p.Emoji {
					t.Errorf("%q makes pictures of words between colons", p.Text)
				}
				literal(t, p.Text, most)
			case "mrkdwn":
				if !ours(strings.Trim(p.Text, "*")) {
					t.Errorf("%q is read as markup, and is no label of ours", p.Text)
				}
			default:
				t.Errorf("a text %q", p.Type)
			}
		}
	}
}

func ours(label string) bool {
	switch label {
	case "What happened", "Why", "What is being done", "How it ended", "Job", "Cost so far", "What you must do", "Status", "Causes", "Workloads":
		return true
	}
	return false
}

// literal checks that a text is one line, not empty, not too long, and that all that could begin markup is written as an entity.
func literal(t *testing.T, s string, most int) {
	t.Helper()
	if n := len(utf16.Encode([]rune(s))); n < 1 || n > most {
		t.Errorf("%d characters, from 1 to %d are taken: %.80q", n, most, s)
	}
	rest := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(s)
	if strings.ContainsAny(rest, "<>&") || strings.ContainsFunc(rest, func(r rune) bool { return !unicode.IsPrint(r) }) {
		t.Errorf("%.200q is read as markup, or does not print", s)
	}
}

// FuzzChat holds the same of cards, whose texts are HTML.
func FuzzChat(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n int) {
		data, err := json.Marshal(chatMessage(outside(text, max(0, n%100)).wording()))
		if err != nil {
			t.Fatal(err)
		}
		checkChat(t, data)
	})
}

func checkChat(t *testing.T, data []byte) {
	t.Helper()
	var b chatBody
	if err := json.Unmarshal(data, &b, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if len(data) > chatBytes {
		t.Errorf("%d bytes, and %d is the most", len(data), chatBytes)
	}
	widgets := 0
	for _, c := range b.Cards {
		for _, s := range append([]string{b.Fallback}, c.Card.Header.Title, c.Card.Header.Subtitle) {
			if strings.ContainsAny(s, "<>&*_~`") {
				t.Errorf("%q is read as markup", s)
			}
		}
		for _, s := range c.Card.Sections {
			for _, w := range s.Widgets {
				widgets++
				if !ours(w.Text.Label) {
					t.Errorf("%q is no label of ours", w.Text.Label)
				}
				literal(t, w.Text.Text, chatText)
			}
		}
	}
	if widgets < 1 || widgets > chatWidgets {
		t.Errorf("%d widgets, from 1 to %d are taken", widgets, chatWidgets)
	}
}

// TestLimits holds the golden messages against what Slack and Chat publish of their limits.
func TestLimits(t *testing.T) {
	for _, f := range names(t) {
		data, err := os.ReadFile(filepath.Join("testdata", f))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(f, ".slack.json"):
			checkSlack(t, data)
		case strings.HasSuffix(f, ".chat.json"):
			checkChat(t, data)
		default:
			t.Errorf("nobody says what the limits of %s are", f)
		}
	}
}

// FuzzEntities: an escaped text unescapes to itself, up to the cut.
func FuzzEntities(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, most int) {
		folded := line(text)
		if n := len([]rune(folded)); n > maxLine {
			t.Errorf("%d characters in a line of %d", n, maxLine)
		}
		if line(folded) != folded {
			t.Errorf("%q folds again, to %q", folded, line(folded))
		}
		most = max(1, most%4000)
		got := html.UnescapeString(entities(folded, most))
		if cut, ok := strings.CutSuffix(got, "…"); got != folded && (!ok || !strings.HasPrefix(folded, cut)) {
			t.Errorf("%q comes out as %q", folded, got)
		}
		if folded != "" {
			literal(t, entities(folded, most), most)
		}
	})
}

// FuzzWebhook: a program gets every text as it is.
func FuzzWebhook(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text string, n int) {
		m := outside(strings.ToValidUTF8(text, "?"), max(0, n%100))
		var body webhookBody
		data, err := json.Marshal(webhook(m))
		if err == nil {
			err = json.Unmarshal(data, &body, json.RejectUnknownMembers(true))
		}
		if err != nil || bytes.ContainsAny(data, "\n\r") {
			t.Fatalf("%v: %s", err, data)
		}
		for i, u := range body.Updates {
			if d := cmp.Diff(m.Updates[i], u.Incident); d != "" {
				t.Errorf("(-sent +got):\n%s", d)
			}
		}
	})
}

// TestConfiguration names every fault, and no secret.
func TestConfiguration(t *testing.T) {
	for name, c := range map[string]struct {
		config config
		faults []string
	}{
		"nothing":  {config{PerMinute: 20}, nil},
		"a bot":    {config{PerMinute: 20, SlackChannel: "C1", SlackBotToken: "xoxb"}, nil},
		"all":      {config{PerMinute: 1, SlackWebhookURL: "https://hooks.slack.com/x", ChatWebhookURL: "https://chat.googleapis.com/x", WebhookURL: "http://127.0.0.1/x", WebhookSecret: "s"}, nil},
		"no token": {config{PerMinute: 20, SlackChannel: "C1"}, []string{"SLACK_CHANNEL and SLACK_BOT_TOKEN go together"}},
		"much": {
			config{SlackBotToken: "private", ChatWebhookURL: "http://example.com/private", SlackWebhookURL: "private", WebhookURL: "https://u:private@example.com", WebhookSecret: "whsec_private!"}, //nolint:gosec // made up
			[]string{"SLACK_CHANNEL and", "CHAT_WEBHOOK_URL is no", "SLACK_WEBHOOK_URL is no", "WEBHOOK_URL is no", "NOTIFY_PER_MINUTE is 0", "WEBHOOK_SECRET is not base64"},
		},
		"a webhook without a secret": {config{PerMinute: 20, WebhookURL: "https://example.com"}, []string{"WEBHOOK_URL and WEBHOOK_SECRET"}},
	} {
		err := c.config.Validate()
		if (err == nil) != (c.faults == nil) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, fault := range c.faults {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v does not say %q", name, err, fault)
			}
		}
		if err != nil && strings.Contains(err.Error(), "private") {
			t.Errorf("%s: a secret is shown: %v", name, err)
		}
	}
}
