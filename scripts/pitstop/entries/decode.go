package entries

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/encoding/unicode"

	"pitstop.internal/events"
)

// longestHead bounds how much of a file is looked at to tell its form.
const longestHead = 4 << 10

// decode hands on the text of a file of entries, as InUTF8 does. Descriptions of TPUs in YAML, as gcloud writes them, become JSON, and
// each stays on the line on which it begins. It waits for no more of a file than its first line.
func decode(r io.Reader) io.Reader { return asJSON(InUTF8(r)) }

// InUTF8 hands on the text of a file: as it is, or out of gzip or UTF-16. A file in a form that is not read fails with the name of that
// form.
func InUTF8(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, longestHead)
	begins := func(with string) bool {
		for n := 1; n <= len(with); n++ { // no more than is needed: standard input may have no more for now
			if head, _ := b.Peek(n); string(head) != with[:n] { //nolint:errcheck // what comes of a short file is told where it is read
				return false
			}
		}
		return true
	}
	for form, why := range unreadForms {
		if begins(form) {
			return bufio.NewReader(readError{errors.New(why)})
		}
	}
	if begins("\x1f\x8b") {
		return unzipped(b)
	}
	two, _ := b.Peek(2) //nolint:errcheck // likewise
	if order := byteOrder(two); order != nil {
		return InUTF8(unicode.UTF16(*order, unicode.UseBOM).NewDecoder().Reader(b))
	}
	if mark := "\uFEFF"; begins(mark) {
		_, _ = b.Discard(len(mark)) //nolint:errcheck // they are there
	}
	return b
}

// byteOrder is that of a text in UTF-16 that begins so; nil is another encoding. No text of JSON or YAML has a zero in it.
func byteOrder(two []byte) *unicode.Endianness {
	if len(two) < 2 {
		return nil
	}
	little, big := unicode.LittleEndian, unicode.BigEndian
	switch {
	case two[0] == 0xFF && two[1] == 0xFE, two[0] != 0 && two[1] == 0:
		return &little
	case two[0] == 0xFE && two[1] == 0xFF, two[0] == 0 && two[1] != 0:
		return &big
	}
	return nil
}

// unreadForms are forms of files that are no text, by the bytes with which they begin, each with the way out.
var unreadForms = map[string]string{
	"PK\x03\x04":       "it is a ZIP file; unpack it first: unzip -p FILE | pitstop VERB -",
	"BZh":              "it is packed with bzip2; unpack it first: bzip2 -dc FILE | pitstop VERB -",
	"\xfd7zXZ\x00":     "it is packed with xz; unpack it first: xz -dc FILE | pitstop VERB -",
	"\x28\xb5\x2f\xfd": "it is packed with zstd; unpack it first: zstd -dc FILE | pitstop VERB -",
	"Obj\x01":          "it is an Avro file; read the log again with gcloud logging read --format=json",
	"PAR1":             "it is a Parquet file; read the log again with gcloud logging read --format=json",
}

func unzipped(r io.Reader) *bufio.Reader {
	z, err := gzip.NewReader(r)
	if err != nil {
		return bufio.NewReader(readError{fmt.Errorf("it is packed with gzip: %w", err)})
	}
	return InUTF8(&gzipped{z})
}

// gzipped says of a fault that it is one of the packing.
type gzipped struct{ from io.Reader }

// Read implements io.Reader.
func (g *gzipped) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("it is packed with gzip: %w", err)
	}
	return n, err
}

// asJSON hands on a text as it is, except that descriptions of TPUs in YAML become JSON.
func asJSON(b *bufio.Reader) io.Reader {
	for at := 1; at <= longestHead; at++ {
		head, err := b.Peek(at)
		switch text := bytes.TrimLeft(head, " \t\r\n"); {
		case len(text) > 0 && (text[0] == '{' || text[0] == '['):
			return b
		case err == nil && (len(text) == 0 || text[len(text)-1] != '\n'):
		case yamlBegins.Match(text):
			return &yamlReader{from: b}
		default:
			return b
		}
	}
	return b
}

// describedYAML matches the line of a YAML description that names a TPU. A log entry has no such line: its fields are others.
var describedYAML = regexp.MustCompile(`(?m)^name: ['"]?projects/[^/\s]+/locations/[^/\s]+/[A-Za-z]+/[^/\s]+\s*$`)

// healthYAML matches the lines of the health in a description, without the others: what grep health leaves of it.
var healthYAML = regexp.MustCompile(`^\s*(?:health: +\S[^\n]*\n?)?(?:healthDescription: +\S[^\n]*\n?)?\s*$`)

// yamlBegins matches the first line of YAML.
var yamlBegins = regexp.MustCompile(`^(---|[A-Za-z]+:)(\s|$)`)

// yamlReader is a file that may be YAML. It is read when it is read first: descriptions whole, up to the size of the largest log entry.
type yamlReader struct {
	from io.Reader
	text io.Reader
}

// Read implements io.Reader.
func (c *yamlReader) Read(p []byte) (int, error) {
	if c.text == nil {
		text, err := io.ReadAll(io.LimitReader(c.from, events.MaxBytes+1))
		switch {
		case err != nil:
			c.text = io.MultiReader(bytes.NewReader(text), readError{err})
		case len(text) > events.MaxBytes && describedYAML.Match(text):
			c.text = readError{fmt.Errorf("it describes TPUs in YAML, and has more than %d bytes; split it, or describe them with --format=json", events.MaxBytes)}
		case describedYAML.Match(text), healthYAML.Match(text):
			if c.text, err = yamlAsJSON(text); err != nil {
				c.text = readError{fmt.Errorf("it describes a TPU, but not in gcloud's YAML or JSON: %w", err)}
			}
		default:
			c.text = io.MultiReader(bytes.NewReader(text), c.from)
		}
	}
	return c.text.Read(p)
}

// readError is the end of a file that could not be read any further.
type readError struct{ error }

// Read implements io.Reader.
func (f readError) Read([]byte) (int, error) { return 0, f.error }

// yamlAsJSON writes each document of YAML as JSON.
func yamlAsJSON(text []byte) (io.Reader, error) {
	var out bytes.Buffer
	d := yaml.NewDecoder(bytes.NewReader(text))
	for line := 1; ; line++ {
		var n yaml.Node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return &out, nil
		} else if err != nil {
			return nil, err
		}
		for ; line < n.Content[0].Line; line++ {
			out.WriteByte('\n')
		}
		raw, err := json.Marshal(valueOf(n.Content[0]))
		if err != nil {
			return nil, err
		}
		out.Write(raw)
		out.WriteByte('\n')
	}
}

// valueOf is a value of YAML as JSON has it. A time stays the text that it is.
func valueOf(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			m[n.Content[i].Value] = valueOf(n.Content[i+1])
		}
		return m
	case yaml.SequenceNode:
		list := []any{}
		for _, item := range n.Content {
			list = append(list, valueOf(item))
		}
		return list
	case yaml.AliasNode:
		return fmt.Sprint("*", n.Value) // gcloud writes none
	case yaml.ScalarNode, yaml.DocumentNode:
	}
	switch n.ShortTag() {
	case "!!bool", "!!int", "!!float", "!!null":
		var v any
		if n.Decode(&v) == nil {
			return v
		}
	}
	return n.Value
}
