// Package process builds a program from a function, as Google's buildpack does. A caller can then run the function the way
// it is deployed: as a process of its own, configured by its environment.
package process

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Function is one function of the repository.
type Function struct {
	// Name is its folder in functions, its package and its name in the cloud.
	Name string
	// Target is the entry point that it registers.
	Target string
}

// Functions returns the functions of the repository at root, by name.
func Functions(root string) ([]Function, error) {
	entries, err := os.ReadDir(filepath.Join(root, "functions"))
	if err != nil {
		return nil, err
	}
	var found []Function
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		source := filepath.Join(root, "functions", e.Name(), "function.go")
		target, err := registers(source)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // a folder without function.go is none
		case err != nil:
			return nil, err
		case target == "":
			return nil, fmt.Errorf("%s: it registers no entry point: call trigger.Register in its init", source)
		}
		found = append(found, Function{Name: e.Name(), Target: target})
	}
	return found, nil
}

// registers finds the entry point in trigger.Register("HandleThis", ...), or in trigger.RegisterPages("ServeThat", ...).
func registers(source string) (target string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		called, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !strings.HasPrefix(called.Sel.Name, "Register") {
			return true
		}
		if name, ok := call.Args[0].(*ast.BasicLit); ok && name.Kind == token.STRING {
			target, err = strconv.Unquote(name.Value)
		}
		return true
	})
	return target, err
}

// Main is the source of a program that serves what a package registers. The buildpack adds the same, but for the address:
// this one is reached from this machine only.
func Main(path string) []byte {
	return fmt.Appendf(nil, `package main

import (
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"

	_ %q
)

func main() {
	if err := funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT")); err != nil {
		panic(err)
	}
}
`, path)
}

// Environment is a configuration under which every function starts.
func Environment() []string {
	return []string{
		"PROJECT_ID=demo",
		"CHECKPOINT_TOPIC=projects/demo/topics/checkpoint-requests",
		"RECOVERY_TOPIC=projects/demo/topics/recovery-requests",
		"RECREATE_TOPIC=projects/demo/topics/recreate-requests",
		"NOTICE_TOPIC=projects/demo/topics/maintenance-notices",
		"OUR_PRINCIPALS=pitstop@demo.iam.gserviceaccount.com",
		"IAP_AUDIENCE=/projects/1/locations/us-central1/services/console-viewers",
	}
}

// FreePort returns a port of the loopback interface on which nobody listens now.
func FreePort(ctx context.Context) (string, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}
