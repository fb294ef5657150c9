package provider

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

const marker = "ghp_m4rk3r"

// TestAnErrorRepeatsNoHiddenValue, however it writes it and whatever part it repeats; everything else it says as before.
func TestAnErrorRepeatsNoHiddenValue(t *testing.T) {
	const (
		script = "#!/bin/bash\nexport TOKEN=\"" + marker + " <&>\"\nexport ZONE=us-west4-a\npassword: hunt3r!\npitcrew run --scale-from=v5litepod-16 -- python3 train.py\n"
		masked = "[metadata value of startup-script]"
	)
	known := []string{"demo", "us-west4-a", "llama", "v5litepod-16"}
	h := Hidden{"metadata value of", map[string]string{"startup-script": script, "key": "s3cret-ö", "short": "yes"}, known}
	quoted, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Invalid value for metadata: " + script + ".":                          "Invalid value for metadata: " + masked + ".",
		"Invalid value: " + string(quoted):                                     `Invalid value: "` + masked + `"`,
		"Invalid value: " + strconv.Quote(script):                              `Invalid value: "` + masked + `"`,
		"Invalid value: " + strings.Join(strings.Fields(script), " "):          "Invalid value: " + masked,
		"Line 2 is wrong: export TOKEN=\"" + marker + " <&>\"":                 "Line 2 is wrong:" + masked,
		"TOKEN is wrong: " + marker + " <&>":                                   "TOKEN is wrong: " + masked,
		"cut off: " + script[:45]:                                              "cut off: " + masked,
		"cut off: ..." + script[30:70] + "...":                                 "cut off: ..." + masked + "...",
		"the password hunt3r! is known":                                        "the password " + masked + " is known",
		`key: "s3cret-ö" and \"s3cret-\u00f6\"`:                                `key: "[metadata value of key]" and \"[metadata value of key]\"`,
		"no more capacity for v5litepod-16 in the zone us-west4-a: demo/llama": "no more capacity for v5litepod-16 in the zone us-west4-a: demo/llama",
		"yes": "yes",
	} {
		if got := h.Mask(text); got != want {
			t.Errorf("%q\nis   %q\nwant %q", text, got, want)
		}
	}
	settings := Hidden{"metadata value of", map[string]string{"config": `{"user": "ada", "password": "hunt3r!", 'key' : 'tiger12'}`}, known}
	if got := settings.Mask("password hunt3r! and key tiger12 of ada"); got != "password [metadata value of config] and key [metadata value of config] of ada" {
		t.Errorf("of a file of settings: %q", got)
	}
	if got := (Hidden{}).Mask("as it is " + marker); got != "as it is "+marker {
		t.Errorf("without metadata: %q", got)
	}
	if got := h.Mask(strings.Repeat("x", longest) + script); strings.Contains(got, marker) {
		t.Error("a very long error repeats it")
	}
}

// FuzzMask: nothing of a long value is left, wherever it stands in a text, and nothing goes wrong.
func FuzzMask(f *testing.F) {
	f.Add("a script with ghp_m4rk3r in it", "invalid: ", " in us-west4-a")
	f.Add("\xff\n\t\"quoted\" = 'x'", "\xff", "")
	f.Fuzz(func(t *testing.T, value, before, after string) {
		h := Hidden{"metadata value of", map[string]string{"k": value}, nil}
		text := before + value + after
		got := h.Mask(text)
		if v := strings.TrimSpace(value); len(v) >= shortest && len(text) < longest && strings.Contains(strings.ReplaceAll(got, "[metadata value of k]", ""), v) && !strings.Contains(before+after, v) {
			t.Errorf("%q leaves %q", text, got)
		}
	})
}
