package main

import (
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
)

// TestArgumentsAreCheckedBeforeAnythingIsAsked: none of these calls may reach the port, and each says what is wrong.
func TestArgumentsAreCheckedBeforeAnythingIsAsked(t *testing.T) {
	t.Setenv("COLUMNS", "2000")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none/key.json") // the first question would need it
	const here = " --project demo"
	for args, says := range map[string]string{
		"status":                                   "--project is missing",
		"status --project My_Project":              `--project "My_Project" is no ID of a project`,
		"status --project 123456":                  `--project "123456" is no ID of a project`,
		"status --project projects/demo":           `--project "projects/demo" is no ID`,
		"status --prefix Dev-" + here:              `--prefix "Dev-" is no prefix`,
		"status --prefix dev" + here:               `--prefix "dev" is no prefix`,
		"status --database a/b" + here:             `--database "a/b" is no name`,
		"status a/b/c" + here:                      `"a/b/c" is no workload`,
		"status --timeout 0s" + here:               "--timeout 0s: it has to be more than 0",
		"status --timeout soon" + here:             `invalid argument "soon" for "--timeout" flag`,
		"pause" + here:                             "name the workloads, or add --all",
		"pause llama --all" + here:                 "name the workloads, or add --all",
		"pause llama/" + here:                      `"llama/" is no workload`,
		"pause llama --for -1h" + here:             `"-1h" is no span of time such as 30d, 12h or 1d12h`,
		"resume a:b" + here:                        `"a:b" is no workload`,
		"incident a/b/c" + here:                    `"a/b/c" is no ID of an incident`,
		"incident llama-8b-20261112-2 x" + here:    "incident takes one ID or workload",
		"incidents --since 0d" + here:              "--since 0s: it has to be more than 0",
		"approve a/b/c/llama-8b-20261112-2" + here: "is no ID of an incident",
		"cancel llama-8b-20261112" + here:          `"llama-8b-20261112" is no ID of an incident`,
		"retry ../x" + here:                        `"../x" is no workload`,
		"attach llama" + here:                      "--policy is missing",
		"attach llama --policy Spot" + here:        `--policy "Spot" cannot be the value of a label`,
		"detach" + here:                            "detach takes one workload",
		"redrive ticks" + here:                     "no topic ticks has dead letters",
		"check llama?" + here:                      `"llama?" is no workload`,
		"canary --for 0s" + here:                   "--for 0s: it has to be more than 0",
		"canary --watched A" + here:                `--watched "A" is no ID of a project`,
		"drill llama --for -1s" + here:             "--for -1s: it has to be more than 0",
		"drill llama --slice a/b" + here:           `--slice "a/b" is no name of a slice`,
		"watch --since -1h" + here:                 `"-1h" is no span of time such as 30d, 12h or 1d12h`,
		"watch --project demo --since x":           `invalid argument "x" for "--since" flag`,
		"watch --project -x":                       `--project "-x" is no ID of a project`,
		"watch":                                    "--project is missing",
	} {
		out, errOut, code := call(t, "", strings.Fields(args)...)
		if code != cli.ExitUsage || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, says) {
			t.Errorf("%s: exit code %d, %s%s; want %s", args, code, out, errOut, says)
		}
	}
	for _, args := range []string{
		"incident llama-8b" + here, "incidents --since 1d12h" + here, "status demo/llama-8b.us-west4-a --project example.com:tpus --prefix dev- --database (default)",
		"incident demo/llama-8b/llama-8b-20261112-2" + here, "pause llama_8b+x --for 1h" + here, "drill llama --yes --slice s-0" + here,
	} {
		if _, errOut, code := call(t, "", strings.Fields(args)...); code != cli.ExitFailed || !strings.Contains(errOut, "/none/key.json") {
			t.Errorf("%s: exit code %d, %s; want it to ask", args, code, errOut)
		}
	}
}
