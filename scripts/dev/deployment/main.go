// Command deployment writes the generated files of the folder terraform and the generated parts of the READMEs, from the Go code
// and from the configuration:
//
//	go run ./scripts/dev/deployment
//
// It writes the filters of the sinks and the variables that each function reads. It writes the permissions with their table, and the
// picture of the topics. It also writes the tables of alerts, reason codes, machine types, inputs and outputs. A test keeps all of them fresh.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty/gocty"

	"pitstop.internal/scripts/pitstop/flex"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "deployment:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	root := strings.TrimSpace(string(out))
	if err != nil || root == "" {
		return fmt.Errorf("call this in Pitstop's repository: %w", err)
	}
	files, err := generate(root)
	if err != nil {
		return err
	}
	old, err := written(root)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if bytes.Equal(files[name], old[name]) {
			continue
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil { //nolint:gosec // everybody may read the sources
			return err
		}
		fmt.Println("wrote", name)
	}
	for name := range old {
		if files[name] == nil {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				return err
			}
			fmt.Println("removed", name)
		}
	}
	return nil
}

// generate makes every generated file, by its path in the repository. Only parts of a README are generated.
func generate(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range filters {
		files["terraform/filters/"+f.topic+"/"+f.source+".filter"] = []byte(f.text + "\n")
	}
	var err error
	if files["terraform/permissions.json"], err = permissionRows(); err != nil {
		return nil, err
	}
	if files["terraform/tests/environment.json"], err = environments(root); err != nil {
		return nil, err
	}
	main, err := parse(filepath.Join(root, "terraform"))
	if err != nil {
		return nil, err
	}
	picture, err := main.picture()
	if err != nil {
		return nil, err
	}
	table, err := permissionTable()
	if err != nil {
		return nil, err
	}
	alerts, err := main.alerts()
	if err != nil {
		return nil, err
	}
	for name, parts := range map[string]map[string]string{
		"functions/README.md":       {"topology": picture},
		"scripts/pitstop/README.md": {"codes": codeTable(), "machines": flex.Table()},
	} {
		if files[name], err = fill(root, name, parts); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"terraform", "terraform/modules/function", "terraform/modules/log-sink", "terraform/modules/training"} {
		m, err := parse(filepath.Join(root, dir))
		if err != nil {
			return nil, err
		}
		name, parts := dir+"/README.md", map[string]string{"inputs": m.inputs(), "outputs": m.results()}
		if dir == "terraform" {
			parts["permissions"], parts["alerts"] = table, alerts
		}
		if files[name], err = fill(root, name, parts); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// written reads the generated files as they are now, with those that no code generates any more.
func written(root string) (map[string][]byte, error) {
	names, err := filepath.Glob(filepath.Join(root, "terraform", "filters", "*", "*.filter"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{
		"terraform/permissions.json", "terraform/tests/environment.json", "functions/README.md", "scripts/pitstop/README.md",
		"terraform/README.md", "terraform/modules/function/README.md", "terraform/modules/log-sink/README.md", "terraform/modules/training/README.md",
	} {
		names = append(names, filepath.Join(root, name))
	}
	files := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		short, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		files[filepath.ToSlash(short)] = data
	}
	return files, nil
}

// fill puts generated parts between their marks.
func fill(root, name string, parts map[string]string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	text := string(data)
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		begin, end := "<!-- generated: "+part+" -->\n", "<!-- end: "+part+" -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			return nil, fmt.Errorf("%s has no place for %s: write %q and %q at the right place", name, part, strings.TrimSpace(begin), end)
		}
		text = before + begin + "\n" + strings.TrimSpace(parts[part]) + "\n\n" + end + after
	}
	return []byte(text), nil
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

// alerts is the table of alerts with the first step for each, in the words of the alert.
func (m *module) alerts() (string, error) {
	v, err := m.Local("alerts")
	if err != nil {
		return "", err
	}
	all := v.AsValueMap()
	var b strings.Builder
	b.WriteString("| alert | fires when | do |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var a struct {
			Title string `cty:"title"`
			Fires string `cty:"fires"`
			Act   string `cty:"act"`
		}
		if err := gocty.FromCtyValue(all[name], &a); err != nil {
			return "", fmt.Errorf("local.alerts.%s: %w", name, err)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", a.Title, a.Fires, a.Act)
	}
	return b.String(), nil
}

// inputs is a module's table of variables.
func (m *module) inputs() string {
	var b strings.Builder
	b.WriteString("| input | type | default | |\n|---|---|---|---|\n")
	for _, v := range m.Variables {
		preset := "required"
		if v.Preset != "" {
			preset = "`" + v.Preset + "`"
		}
		kind := strings.Join(strings.Fields(v.Kind), " ") // a type may be written on several lines
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", v.Name, kind, preset, v.Description)
	}
	return b.String()
}

// results is a module's table of outputs.
func (m *module) results() string {
	var b strings.Builder
	b.WriteString("| output | |\n|---|---|\n")
	for _, o := range m.Outputs {
		fmt.Fprintf(&b, "| `%s` | %s |\n", o.Name, o.Description)
	}
	return b.String()
}
