// Package notify sends people the steps of an incident: in Slack, in Google Chat, or to a program by a signed webhook. It
// decides nothing and changes no TPU: a target that is away holds up no incident.
//
// A Pub/Sub message is only a reason to look: the text comes from the ledger. Messages come at least once and in any order,
// yet each step goes out at most once. A message older than the ledger sends the newest step, and the later message finds
// that step already sent. Beyond a set number a minute, updates go out together in one message.
package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/trigger"
)

func init() {
	// Arrives: pitstop.incident.updated.v1 on the topic incident-updates. Publishes: nothing.
	// Grants: to read the ledger, to read and write the database of what was told, roles/secretmanager.secretAccessor on its secrets.
	trigger.Register("HandleNotify", trigger.Function[config, events.IncidentPointer]{Decode: decode, Build: build})
}

// config names the targets; an empty setting is no target. Tokens and addresses that let anybody post come from Secret
// Manager, and appear in no error and no log.
type config struct {
	Ledger  ledger.Config
	Journal ledger.JournalConfig
	// SlackChannel is the ID of a channel. The bot of SlackBotToken (xoxb-...) must be invited to it.
	SlackChannel  string `env:"SLACK_CHANNEL"`
	SlackBotToken string `env:"SLACK_BOT_TOKEN"`
	// SlackWebhookURL is an incoming webhook of Slack, ChatWebhookURL a webhook of a space in Google Chat.
	SlackWebhookURL string `env:"SLACK_WEBHOOK_URL"`
	ChatWebhookURL  string `env:"CHAT_WEBHOOK_URL"`
	// WebhookURL is called with a signature made from WebhookSecret.
	WebhookURL    string `env:"WEBHOOK_URL"`
	WebhookSecret string `env:"WEBHOOK_SECRET"`
	// PerMinute bounds the messages to each target.
	PerMinute int `env:"NOTIFY_PER_MINUTE, default=20"`
}

// Validate returns every fault of the configuration that its tags do not find.
func (c config) Validate() error {
	var faults []error
	both := func(one, other, what, with string) {
		if (one == "") != (other == "") {
			faults = append(faults, fmt.Errorf("%s and %s go together: set both or none", what, with))
		}
	}
	both(c.SlackChannel, c.SlackBotToken, "SLACK_CHANNEL", "SLACK_BOT_TOKEN")
	both(c.WebhookURL, c.WebhookSecret, "WEBHOOK_URL", "WEBHOOK_SECRET")
	for _, u := range []struct{ name, value string }{
		{"SLACK_WEBHOOK_URL", c.SlackWebhookURL}, {"CHAT_WEBHOOK_URL", c.ChatWebhookURL}, {"WEBHOOK_URL", c.WebhookURL},
	} {
		if u.value != "" && !callable(u.value) {
			faults = append(faults, fmt.Errorf("%s is not an address that begins with https://", u.name))
		}
	}
	if c.PerMinute < 1 {
		faults = append(faults, fmt.Errorf("NOTIFY_PER_MINUTE is %d, but must be at least 1", c.PerMinute))
	}
	if _, err := c.targets(time.Now); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// callable reports whether secrets may be sent to an address: by https, or on this machine.
func callable(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && net.ParseIP(u.Hostname()).IsLoopback()
}

// targets are the configured ones.
func (c config) targets(now func() time.Time) (targets []Target, err error) {
	if c.SlackChannel != "" {
		targets = append(targets, NewSlackBot(SlackAPI, c.SlackChannel, c.SlackBotToken))
	}
	if c.SlackWebhookURL != "" {
		targets = append(targets, NewSlackWebhook(c.SlackWebhookURL))
	}
	if c.ChatWebhookURL != "" {
		targets = append(targets, NewChat(c.ChatWebhookURL))
	}
	if c.WebhookURL != "" {
		w, err := NewWebhook(c.WebhookURL, c.WebhookSecret, now)
		if err != nil {
			return nil, err
		}
		targets = append(targets, w)
	}
	return targets, nil
}

func build(_ context.Context, cfg config) (func(context.Context, events.IncidentPointer) error, error) {
	targets, err := cfg.targets(time.Now)
	if err != nil {
		return nil, err
	}
	return newHandler(Deps{
		Ledger: cfg.Ledger.Open(), Journal: cfg.Journal.Open(cfg.Ledger.ProjectID), Targets: targets, PerMinute: cfg.PerMinute,
		Now: time.Now, Log: trigger.Log(),
	}).handle, nil
}
