package notify

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/fault"
)

// Slack's limits: https://docs.slack.dev/reference/block-kit/blocks and .../methods/chat.postMessage.
const (
	slackHeader = 150
	slackField  = 2000
	slackText   = 4000
	slackBlocks = 50
)

// SlackAPI is where a bot posts.
const SlackAPI = "https://slack.com/api/chat.postMessage"

// SlackBot posts as a bot, with one thread for each incident.
type SlackBot struct {
	// Channel is the ID of the channel, Token the bot's; API is SlackAPI.
	Channel, Token, API string
	client              *http.Client
}

// NewSlackBot returns a target that posts as a bot.
func NewSlackBot(api, channel, token string) *SlackBot {
	return &SlackBot{Channel: channel, Token: token, API: api, client: newClient()}
}

// Name implements Target. It names the channel, because threads belong to a channel.
func (s *SlackBot) Name() string { return "slack-" + s.Channel }

// Knows implements Target: Slack posts a repeated message twice.
func (*SlackBot) Knows() bool { return false }

// Send implements Target. A message that a person has to act on also appears in the channel, outside the thread.
func (s *SlackBot) Send(ctx context.Context, m Message) (thread string, err error) {
	body := slackMessage(m.wording())
	body.Channel, body.Thread = s.Channel, m.Thread
	body.Broadcast = m.Thread != "" && m.Loud()
	data, err := json.Marshal(body)
	if err != nil {
		return "", fault.Permanent(err)
	}
	header, answer, err := post(ctx, s.client, s.API, http.Header{"Authorization": {"Bearer " + s.Token}}, data)
	if err != nil {
		return "", err
	}
	var said struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		TS    string `json:"ts"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return "", fmt.Errorf("%w: the answer is not JSON: %s", errUnsure, short(answer))
	}
	if said.OK {
		return orElse(m.Thread, said.TS), nil
	}
	err = fmt.Errorf("slack: %s", short([]byte(said.Error)))
	switch said.Error {
	case "ratelimited", "rate_limited":
		return "", laterError{err, retryAfter(header)}
	case "internal_error", "fatal_error": // it may have been posted before that, as the page of the method says
		return "", fmt.Errorf("%w: %w", errPerhaps, err)
	case "service_unavailable", "request_timeout", "team_added_to_org":
		return "", err
	}
	return "", fault.Permanent(err)
}

// SlackWebhook posts by an incoming webhook, which has no threads. Every message stands for itself and names its incident.
type SlackWebhook struct {
	url    string
	client *http.Client
}

// NewSlackWebhook returns a target for an incoming webhook.
func NewSlackWebhook(url string) *SlackWebhook {
	return &SlackWebhook{url: url, client: newClient()}
}

// Name implements Target.
func (*SlackWebhook) Name() string { return "slack-webhook" }

// Knows implements Target.
func (*SlackWebhook) Knows() bool { return false }

// Send implements Target.
func (s *SlackWebhook) Send(ctx context.Context, m Message) (thread string, err error) {
	data, err := json.Marshal(slackMessage(m.wording()))
	if err != nil {
		return "", fault.Permanent(err)
	}
	_, _, err = post(ctx, s.client, s.url, nil, data)
	return "", err
}

type slackBody struct {
	Channel   string       `json:"channel,omitzero"`
	Thread    string       `json:"thread_ts,omitzero"`
	Broadcast bool         `json:"reply_broadcast,omitzero"`
	Text      string       `json:"text"`
	Blocks    []slackBlock `json:"blocks"`
	Links     bool         `json:"unfurl_links"`
	Media     bool         `json:"unfurl_media"`
}

type slackBlock struct {
	Type     string      `json:"type"`
	Text     *slackPart  `json:"text,omitempty"`
	Fields   []slackPart `json:"fields,omitempty"`
	Elements []slackPart `json:"elements,omitempty"`
}

type slackPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Emoji stays off in texts from outside: Slack would turn words between colons into pictures.
	Emoji *bool `json:"emoji,omitempty"`
}

// plain is a text from outside: Slack reads no markup in it.
func plain(s string, most int) slackPart {
	off := false
	return slackPart{Type: "plain_text", Text: orElse(entities(s, most), "-"), Emoji: &off}
}

// slackMessage lays a wording out in blocks. A notification shows the text outside the blocks. Texts from outside are plain
// texts; only our own labels use markup.
func slackMessage(v wording) slackBody {
	header := plain(v.title, slackHeader)
	b := slackBody{Text: orElse(entities(unmarked(v.title), slackText), "-"), Blocks: []slackBlock{{Type: "header", Text: &header}}}
	for _, r := range v.rows {
		b.Blocks = append(b.Blocks, slackBlock{Type: "section", Fields: []slackPart{{Type: "mrkdwn", Text: "*" + r.label + "*"}, plain(r.text, slackField)}})
	}
	b.Blocks = append(b.Blocks, slackBlock{Type: "context", Elements: []slackPart{plain(v.footer, slackField)}})
	return b
}
