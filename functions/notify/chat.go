package notify

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/fault"
)

// Google Chat's limits: https://developers.google.com/workspace/chat/create-messages and .../api/guides/message-formats/cards.
const (
	chatBytes   = 32_000
	chatText    = 3000
	chatWidgets = 100
)

// Chat posts by a webhook of a space in Google Chat, with one thread for each incident.
type Chat struct {
	url    string
	client *http.Client
}

// NewChat returns a target for a space's webhook.
func NewChat(url string) *Chat { return &Chat{url: url, client: newClient()} }

// Name implements Target.
func (*Chat) Name() string { return "chat" }

// Knows implements Target.
func (*Chat) Knows() bool { return false }

// Send implements Target. The thread has the incident's own name, so the answer is not needed.
func (c *Chat) Send(ctx context.Context, m Message) (thread string, err error) {
	body := chatMessage(m.wording())
	address, err := url.Parse(c.url)
	if err != nil {
		return "", fault.Permanentf("the address cannot be read")
	}
	if len(m.Updates) == 1 {
		body.Thread = &chatThread{m.Updates[0].Workload + "/" + m.Updates[0].Incident}
		q := address.Query()
		q.Set("messageReplyOption", "REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD")
		address.RawQuery = q.Encode()
	}
	data, err := json.Marshal(body)
	if err != nil {
		return "", fault.Permanent(err)
	}
	_, _, err = post(ctx, c.client, address.String(), nil, data)
	return "", err
}

type chatBody struct {
	Fallback string      `json:"fallbackText"`
	Thread   *chatThread `json:"thread,omitempty"`
	Cards    []chatCard  `json:"cardsV2"`
}

type chatThread struct {
	Key string `json:"threadKey"`
}

type chatCard struct {
	ID   string `json:"cardId"`
	Card struct {
		Header   chatHeader    `json:"header"`
		Sections []chatSection `json:"sections"`
	} `json:"card"`
}

type chatHeader struct {
	Title    string `json:"title"`
	Subtitle string `json:"subtitle"`
}

type chatSection struct {
	Widgets []chatWidget `json:"widgets"`
}

type chatWidget struct {
	Text chatDecorated `json:"decoratedText"`
}

type chatDecorated struct {
	Label string `json:"topLabel"`
	Text  string `json:"text"`
	Wrap  bool   `json:"wrapText"`
}

// chatMessage lays a wording out as a card. Chat reads the texts as HTML, so characters that begin a tag or an entity are
// escaped. Chat takes the header and the fallback text literally, so these have no such characters.
func chatMessage(v wording) chatBody {
	b := chatBody{Fallback: unmarked(v.title), Cards: make([]chatCard, 1)}
	c := &b.Cards[0]
	c.ID = "incident"
	c.Card.Header = chatHeader{unmarked(v.title), unmarked(v.footer)}
	var s chatSection
	for _, r := range v.rows {
		s.Widgets = append(s.Widgets, chatWidget{chatDecorated{r.label, entities(r.text, chatText), true}})
	}
	c.Card.Sections = []chatSection{s}
	return b
}

// unmarked replaces the characters that Chat, or Slack outside its blocks, reads as markup and cannot escape: links,
// mentions, bold and the like.
func unmarked(s string) string {
	return strings.NewReplacer("<", "‹", ">", "›", "&", "+", "*", "∗", "~", "∼", "`", "'", "_", "‗").Replace(s)
}
