package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"google.golang.org/api/container/v1"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish"
)

// deployment is an installation of Pitstop as an operator reaches it with their own credentials: its ledger, its topics and the TPUs
// that it watches.
type deployment struct {
	// google is the connection to Google. It is nil in a test that asks nothing over a network.
	google  *google
	open    func(project, database string) *ledger.Ledger
	publish func(topics publish.Topics) ledger.Publisher
	letters func(ctx context.Context) (letters, error)
	cloud   func(ctx context.Context) (cloud, error)
	// tpus are read, with the legacy nodes of these zones.
	tpus   func(ctx context.Context, legacyZones []string) (tpus, error)
	read   func(ctx context.Context, uri string) ([]byte, error)
	store  checkpoints
	access access
	grants func() ([]grant, error)
	// who names the caller, for the record.
	who    func(ctx context.Context) string
	canary canary
	look   func(ctx context.Context) (sight, error)
	// pools reads the node pools of a cluster.
	pools func(ctx context.Context, project, location, cluster string) ([]*container.NodePool, error)
	now   func() time.Time
	sleep func(ctx context.Context, d time.Duration) error
	// worded is told of each word of a person's that is stored; nil is not.
	worded func(ctx context.Context, s ledger.Step)
	// heldAll is told who has paused everything, or has lifted that; nil is not.
	heldAll func(by string, lift bool)
}

// cloud is the part of the Cloud TPU API that the verbs call.
type cloud interface {
	SetLabel(ctx context.Context, r provider.Ref, key, value string) error
	Simulate(ctx context.Context, r provider.Ref) (operation string, err error)
}

// tpus are the TPUs as the API shows them now.
type tpus interface {
	List(ctx context.Context, project, zone string) (provider.Listing, error)
}

// connected is a deployment behind this connection.
func connected(g *google) deployment {
	rest := option.WithHTTPClient(g.client())
	return deployment{
		google:  g,
		open:    g.ledger,
		publish: g.publisher,
		letters: func(ctx context.Context) (letters, error) {
			opts, err := g.rpc(ctx)
			if err != nil {
				return nil, err
			}
			return newBroker(ctx, pullFor, opts...)
		},
		cloud:  func(ctx context.Context) (cloud, error) { return cloudtpu.New(ctx, rest) },
		tpus:   listers(g, rest),
		read:   checkpoint.Reader(rest),
		store:  checkpoint.Deployed(rest),
		access: iamAccess{google: g},
		grants: readGrants,
		who:    g.who,
		canary: cloudlog.New(rest),
		look:   func(ctx context.Context) (sight, error) { return look(ctx, g) },
		pools:  nodePools(rest),
		now:    time.Now,
		sleep:  ledger.Sleep,
	}
}

// listers opens each client once: a verb that looks again and again would otherwise leave a connection behind at each look.
func listers(g *google, rest option.ClientOption) func(ctx context.Context, legacyZones []string) (tpus, error) {
	var mu sync.Mutex
	open := map[string]tpus{}
	return func(ctx context.Context, legacyZones []string) (tpus, error) {
		legacyZones = slices.Sorted(slices.Values(legacyZones))
		mu.Lock()
		defer mu.Unlock()
		key := strings.Join(legacyZones, ",")
		if known := open[key]; known != nil {
			return known, nil
		}
		opts := cloudtpu.Clients{Present: []option.ClientOption{rest}}
		if len(legacyZones) > 0 {
			var err error
			if opts.Former, err = g.rpc(ctx); err != nil {
				return nil, err
			}
		}
		client, err := cloudtpu.Config{LegacyZones: legacyZones}.OpenWith(ctx, opts)
		if err != nil {
			return nil, err
		}
		open[key] = client
		return client, nil
	}
}

// place names a deployment on the command line.
type place struct{ project, prefix, database string }

func (a *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.project, "project", "", "the project in which Pitstop is deployed")
	c.Flags().StringVar(&a.prefix, "prefix", "", "the prefix of the deployment's names, if it has one")
	c.Flags().StringVar(&a.database, "database", "", "its Firestore database; the default is the prefix and "+ledger.Database)
}

func (d deployment) at(a place) (*ledger.Ledger, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	return d.open(a.project, cmp.Or(a.database, a.prefix+ledger.Database)), nil
}

// bounded adds --timeout to verbs, and sees that they never wait longer for Google.
func (d deployment) bounded(all ...*cobra.Command) []*cobra.Command {
	as := func() string { return "" }
	if d.google != nil {
		as = d.google.caller
	}
	for _, c := range all {
		bounds(c, as)
	}
	return all
}

// workloads reads the workloads of these IDs or names, or all, in one listing.
func workloads(ctx context.Context, l *ledger.Ledger, names []string) (found []incident.Workload, err error) {
	all, err := l.Workloads(ctx)
	if err != nil || len(names) == 0 {
		return all, err
	}
	return workloadsNamed(all, names)
}

// workloadsNamed are those of these IDs or names.
func workloadsNamed(all []incident.Workload, names []string) ([]incident.Workload, error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w incident.Workload) bool { return isNamed(w.ID, name) }) {
			var ids []string
			for _, w := range all {
				ids = append(ids, w.ID)
			}
			return nil, usage("there is no workload %q; the ledger has %s", name, cmp.Or(strings.Join(ids, ", "), "none"))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(w incident.Workload) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return isNamed(w.ID, name) })
	}), nil
}

// isNamed reports whether a word is the ID of a workload, or its name.
func isNamed(id, word string) bool { return id == word || strings.HasSuffix(id, "/"+word) }

func (d deployment) incidentCommand() *cobra.Command {
	var where place
	var asJSON bool
	var priced string
	c := &cobra.Command{
		Use:   "incident ID|WORKLOAD",
		Short: "Print the whole story of an incident, or list those of a workload",
		Long: "Print the whole story of an incident, open or closed: each observation, each decision with its reason, the switches with\n" +
			"their limits, the calls with their results, the save, the zones that refused, the cost and the budget. The line job has the\n" +
			"terms of Google's training service: state, error and retries. If two projects have an incident of the same ID, write\n" +
			"PROJECT/ID.\n\n" +
			"Of a workload it lists every incident, open or in the archive, one line each, the newest first. incidents lists those of all\n" +
			"workloads.\n\n" +
			"--prices names a YAML file with your prices: dollars for a chip-hour, by generation or accelerator type, as in v5litepod:\n" +
			"{spot: 0.48, other: 1.20}. The cost counts the chips of the workload as it is now.",
		Args: oneName("ID or workload", "llama-8b-20261112-3"),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := readPrices(priced)
			if err != nil {
				return err
			}
			l, err := d.at(where)
			if err != nil {
				return err
			}
			noIncident := checkIncident(args[0])
			if noIncident != nil && checkWorkload(args[0]) != nil {
				return noIncident
			}
			all, err := workloads(c.Context(), l, nil)
			if err != nil {
				return err
			}
			named, noWorkload := workloadsNamed(all, args)
			switch {
			case noWorkload == nil && priced != "":
				return usage("--prices is for one incident, as in llama-8b-20261112-3, and %s is a workload", args[0])
			case noWorkload == nil:
				return d.list(c, l, named, time.Time{}, asJSON, args[0]+" has had no incident")
			case noIncident != nil:
				return noWorkload
			}
			w, in, err := find(c.Context(), l, all, args[0])
			if err != nil {
				return err
			}
			spent := list.costOf(w, in, d.now())
			if asJSON {
				raw, err := json.Marshal(struct {
					incident.Incident
					Workload string          `json:"workload"`
					Cost     cost            `json:"cost"`
					Job      events.JobTerms `json:"job"`
				}{in, w.ID, spent, jobterms.Of(w, in)}, json.Deterministic(true))
				if err != nil {
					return err
				}
				tell(c.OutOrStdout(), string(raw))
				return nil
			}
			newPrinter(c.OutOrStdout(), false).incident(w, in, spent)
			return nil
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the incident, its cost and its job as one JSON object; of a workload, one short object per incident")
	c.Flags().StringVar(&priced, "prices", "", "a file of prices, in dollars for a chip-hour")
	readsFile(c, "prices")
	return c
}

// find looks for an incident of these workloads by its ID. If incidents of several projects have that ID, the word has to be PROJECT/ID or
// PROJECT/NAME/ID.
func find(ctx context.Context, l *ledger.Ledger, all []incident.Workload, word string) (incident.Workload, incident.Incident, error) {
	type match struct {
		w  incident.Workload
		in incident.Incident
	}
	var found []match
	of, id := "", word
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		of, id = word[:i], word[i+1:]
	}
	for _, w := range all {
		if of != "" && w.ID != of && !strings.HasPrefix(w.ID, of+"/") {
			continue
		}
		in, err := l.Incident(ctx, w, id)
		switch {
		case err == nil:
			found = append(found, match{w, in})
		case !errors.Is(err, ledger.ErrNotFound):
			return w, in, err
		}
	}
	switch len(found) {
	case 0:
		return incident.Workload{}, incident.Incident{}, usage("there is no incident %q; pitstop incidents lists those of the last days", word)
	case 1:
		return found[0].w, found[0].in, nil
	}
	var open, over []string
	for _, f := range found {
		if f.in.Outcome == "" {
			open = append(open, f.w.ID+"/"+id+" (open)")
		} else {
			over = append(over, f.w.ID+"/"+id+" ("+string(f.in.Outcome)+")")
		}
	}
	return incident.Workload{}, incident.Incident{}, usage("%s may be %s: write it with its project", word,
		strings.Join(append(open, over...), " or "))
}

func (p *printer) incident(w incident.Workload, in incident.Incident, spent cost) {
	p.heading(in.ID, fmt.Sprintf("%s · workload %s · policy %s", in.Cause, w.ID, cmp.Or(in.Policy, "none")))
	tell(p.out, "  "+p.paint(dim, "when it opened: "+limits(in.Switches, in.Limits)))
	day := ""
	for _, l := range in.Timeline {
		if d := l.At.UTC().Format("Mon Jan 2, 2006"); d != day {
			tell(p.out, "  "+d)
			day = d
		}
		word, colour := string(l.Kind), ""
		switch l.Kind {
		case incident.LineDecided:
			colour = bold
		case incident.LineEnded:
			word, colour = strings.ToUpper(string(in.Outcome)), yellow
		case incident.LineSeen, incident.LineAsked, incident.LineCame:
		}
		why := l.Reason
		if l.Source != "" && l.Kind == incident.LineSeen {
			why = strings.TrimPrefix(why+" ["+l.Source+"]", " ")
		}
		p.row(l.At.UTC().Format("15:04:05"), word, colour, l.Text, withCode(why, string(l.Code)))
	}
	if in.LeftOut > 0 {
		tell(p.out, fmt.Sprintf("  %d lines in the middle are not stored", in.LeftOut))
	}
	for _, t := range in.Troubles {
		line := "  trouble   " + strings.TrimSpace(string(t.Cause)+" "+t.Slice) + " at " + t.At.UTC().Format(time.RFC3339) + ": " + t.Text
		if !t.Proven && t.Cause.Infrastructure() {
			line += " (not proven)"
		}
		tell(p.out, line)
	}
	if s := in.Save; !s.Requested.IsZero() {
		line := "  save      " + s.ID + " requested at " + s.Requested.UTC().Format(time.RFC3339) + ": " + cmp.Or(string(s.Result), "running")
		if s.Failed != "" {
			line += ", " + s.Failed
		}
		tell(p.out, line)
	}
	for _, z := range in.Zones {
		until := "asked again after " + z.Until.UTC().Format(time.RFC3339)
		if z.Never {
			until = "not asked again"
		}
		tell(p.out, "  refused   "+z.Place().String()+" at "+z.At.UTC().Format(time.RFC3339)+", "+until+": "+withCode(z.Text, string(z.Code)))
	}
	p.calls(in)
	for _, would := range in.WouldHave() {
		tell(p.out, "  would have: "+would)
	}
	tell(p.out, "  cost      "+spent.String())
	tell(p.out, "  job       "+jobterms.Describe(jobterms.Of(w, in)))
	if in.Advice != "" {
		tell(p.out, "  "+p.paint(red, "you: "+in.Advice))
	}
}

// calls prints the calls that an incident caused, with their results.
func (p *printer) calls(in incident.Incident) {
	if len(in.Calls) > 0 {
		tell(p.out, "  "+p.paint(bold, "calls"))
	}
	if in.CallsLeftOut > 0 {
		tell(p.out, "  the "+count(in.CallsLeftOut, "oldest call")+" not stored")
	}
	for _, c := range in.Calls {
		p.row(c.At.UTC().Format("15:04:05"), c.Function, "", c.What(), came(c))
	}
}

// came is the result of a call.
func came(c incident.Call) string {
	text := "accepted"
	switch {
	case c.NotMade:
		text = "not made"
	case c.Answered.IsZero():
		text = "its result is not known"
	case c.Operation != "" && c.Code != "":
		text = "accepted, then its operation failed"
	case c.Code != "":
		text = "refused"
	}
	text = withCode(text, string(c.Code))
	if c.Folded > 0 {
		text += fmt.Sprintf(", and %d more times until %s", c.Folded, c.Until.UTC().Format("Jan 2 15:04:05"))
	}
	return text
}

func (d deployment) pauseCommand() *cobra.Command {
	var where place
	var all bool
	var lasts time.Duration
	var why string
	c := &cobra.Command{
		Use:   "pause [WORKLOAD...]",
		Short: "Stop Pitstop from changing anything, for some workloads or for all",
		Long: "Stop every call that changes something, for these workloads, or with --all for everything. Pitstop reads the pause right\n" +
			"before each call. It still watches and reports, and a call that has begun runs to its end.\n\n" + needs,
		RunE: func(c *cobra.Command, names []string) error {
			if lasts < 0 {
				return usage("--for %s: it has to be more than 0; leave it out to pause until resume", lasts)
			}
			p := incident.Paused{Word: incident.Word{Why: why}}
			if lasts > 0 {
				p.Until = d.now().Add(lasts)
			}
			return d.setPause(c, where, names, all, p)
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&all, "all", false, "pause everything")
	spanVar(c.Flags(), &lasts, "for", 0, "how long to pause, as in 2h or 3d; without it the pause lasts until resume")
	whyFlag(c, &why)
	return c
}

func (d deployment) resumeCommand() *cobra.Command {
	var where place
	var all bool
	var why string
	c := &cobra.Command{
		Use:   "resume [WORKLOAD...]",
		Short: "Lift the pause of some workloads, or of all",
		Long:  "Lift the pause of these workloads, or with --all the pause of everything.\n\n" + needs,
		RunE: func(c *cobra.Command, names []string) error {
			return d.setPause(c, where, names, all, incident.Paused{Word: incident.Word{Why: why}, Lift: true})
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&all, "all", false, "lift the pause of everything; a workload that was paused by its name stays paused")
	whyFlag(c, &why)
	return c
}

func (d deployment) setPause(c *cobra.Command, where place, names []string, all bool, e incident.Paused) error {
	if all == (len(names) > 0) {
		return usage("name the workloads, or add --all")
	}
	if err := checkWorkloads(names); err != nil {
		return err
	}
	ctx, out := c.Context(), c.OutOrStdout()
	l, err := d.at(where)
	if err != nil {
		return err
	}
	e.By = d.who(ctx)
	p := &incident.Pause{By: e.By, Why: e.Why, At: d.now(), Until: e.Until}
	what := "paused " + told(p)
	if e.Lift {
		p.Until = p.At.Add(-incident.PauseMargin) // it is over by every clock, and names the person who lifted it
		what = e.By + " lifted the pause"
	}
	if all {
		if err := l.SetPause(ctx, p); err != nil {
			return err
		}
		if d.heldAll != nil {
			d.heldAll(e.By, e.Lift)
		}
		tell(out, "everything: "+what)
		return nil
	}
	found, err := workloads(ctx, l, names)
	if err != nil {
		return err
	}
	var failed []error
	for _, w := range found { // a workload that fails does not stop the others
		if !lasting(ctx) {
			break
		}
		if w.Pause == nil && e.Lift {
			tell(out, w.ID+": it was not paused")
			continue
		}
		_, _, err := d.order(ctx, l, where, w.ID, e)
		if err := d.told(c, settle(ctx, err), w.ID+": "+what); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", w.ID, err))
		}
	}
	return errors.Join(failed...)
}
