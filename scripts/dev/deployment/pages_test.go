package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// documents are the Markdown files of the repository, by their path in it, with their texts.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "build"):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path) //nolint:gosec // the repository of this test
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		pages[name] = string(text)
		return err
	})
	must(t, err)
	return pages
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

// anchors are the names by which links reach the headings of a page, as GitHub makes them.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		all[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, heading[1])] = true
	}
	return all
}

// TestEveryLinkLeadsSomewhere follows the links of all documents to files and headings of the repository.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	pages := documents(t)
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	followed := 0
	for name, text := range pages {
		for _, found := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			followed++
			target, anchor, _ := strings.Cut(found[1], "#")
			file := name
			if target != "" {
				file = filepath.Join(filepath.Dir(name), target)
			}
			at, err := os.Stat(filepath.Join(root, file))
			if err != nil {
				t.Errorf("%s: %s leads nowhere", name, found[1])
				continue
			}
			if at.IsDir() {
				file = filepath.Join(file, "README.md")
			}
			if page, ok := pages[file]; anchor != "" && (!ok || !anchors(page)[anchor]) {
				t.Errorf("%s: %s has no heading %q", name, file, anchor)
			}
		}
	}
	if followed < 50 {
		t.Errorf("only %d links were followed", followed)
	}
}

// TestWhereToChangeNamesWhatIsThere holds the files that a newcomer is sent to, and the folders. A file without a folder is in the one named
// before it.
func TestWhereToChangeNamesWhatIsThere(t *testing.T) {
	_, section, _ := strings.Cut(documents(t)["shared/README.md"], "\n## Where do I change ...\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows, held := 0, 0
	for row := range strings.Lines(section) {
		if !strings.HasPrefix(row, "| ") {
			continue
		}
		rows++
		dir := ""
		for _, named := range regexp.MustCompile("`([\\w*-]+(?:/[\\w*.-]+)+|\\w+\\.go)`").FindAllStringSubmatch(row, -1) {
			path := named[1]
			switch {
			case !strings.Contains(path, "/"):
				path = filepath.Join(dir, path)
			case filepath.Ext(path) == "":
				dir = path
			}
			held++
			if there, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(there) != 1 {
				t.Errorf("%s leads to %q\n%s", named[1], there, row)
			}
		}
	}
	if rows < 13 || held < 30 { // with the head of the table
		t.Errorf("%d rows with %d files and folders", rows, held)
	}
}

// TestEveryProgramOnThePagesIsOne holds each "go run ./DIR" and "go test ./DIR" of a document against the folders.
func TestEveryProgramOnThePagesIsOne(t *testing.T) {
	call := regexp.MustCompile(`go (?:run|test|build)(?: -\S+)* (\./[a-z/]+|\./\.\.\.)`)
	held := 0
	for name, text := range documents(t) {
		for _, found := range call.FindAllStringSubmatch(text, -1) {
			held++
			sources, err := filepath.Glob(filepath.Join(root, strings.TrimSuffix(found[1], "..."), "*.go"))
			if err != nil || len(sources) == 0 && found[1] != "./..." {
				t.Errorf("%s: %s holds no Go program", name, found[1])
			}
		}
	}
	if held < 40 {
		t.Errorf("only %d calls were held", held)
	}
}

// TestEveryTestOnThePagesIsOne: a page that rests on a test names one that is there.
func TestEveryTestOnThePagesIsOne(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	if err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path) //nolint:gosec // the repository of this test
		for _, found := range declared.FindAllStringSubmatch(string(source), -1) {
			there[found[1]] = true
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	held := 0
	for name, text := range documents(t) {
		for _, named := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(text, -1) {
			if held++; !there[named[1]] {
				t.Errorf("%s: there is no test %s", name, named[1])
			}
		}
	}
	if held < 100 {
		t.Errorf("only %d tests were looked for", held)
	}
}
