//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
)

// traineeArgument makes a training of this program: it tells when it began and when it was asked to save.
const traineeArgument = "crew-trainee"

func trainee() {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("began", time.Now().UnixNano())
	for range asked {
		fmt.Println("asked", time.Now().UnixNano())
	}
}

// crew is a pitcrew that is measured, on a simulated TPU.
type crew struct {
	cmd    *exec.Cmd
	server *metadatatest.Server
	lines  *bufio.Scanner
	state  string
	stop   func()
}

func startCrew(ctx context.Context, program string, flags, command []string) (*crew, error) {
	dir, err := os.MkdirTemp("", "pitcrew-bench-")
	if err != nil {
		return nil, err
	}
	c := &crew{server: metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now), state: filepath.Join(dir, "state")}
	c.server.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	host, stop := c.server.Start()
	args := append([]string{"run", "--metadata=" + host, "--state=" + c.state}, flags...)
	c.cmd = exec.CommandContext(ctx, program, append(append(args, "--"), command...)...) //nolint:gosec // our own words
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		stop()
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.lines = bufio.NewScanner(out)
	c.stop = func() {
		ended := make(chan struct{})
		defer close(ended)
		go func() { // who asks twice does not want to wait; two that come at once are one
			for {
				_ = c.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may just have ended
				select {
				case <-ended:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		_, _ = io.Copy(io.Discard, out) //nolint:errcheck // what is left of it
		_ = c.cmd.Wait()                //nolint:errcheck // it was told to end
		stop()
		_ = os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	}
	return c, nil
}

// told waits for a line of the training and returns its time.
func (c *crew) told(what string) (time.Time, error) {
	for c.lines.Scan() {
		word, nanos, _ := strings.Cut(c.lines.Text(), " ")
		n, err := strconv.ParseInt(nanos, 10, 64)
		if word == what && err == nil {
			return time.Unix(0, n), nil
		}
	}
	return time.Time{}, fmt.Errorf("the training said nothing of %s: %w", what, errors.Join(c.lines.Err(), io.ErrUnexpectedEOF))
}

// benchCrew measures what a crew costs the training that it is beside, and how fast it is.
func benchCrew(ctx context.Context) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitcrew-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	program := filepath.Join(dir, "pitcrew")
	build := exec.CommandContext(ctx, "go", "run", "./scripts/package", "-out", dir, "pitcrew") //nolint:gosec // our own words
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build pitcrew: %w: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	const mib = 1 << 20
	figures := []figure{{"pitcrew: binary", fmt.Sprintf("%.1f MiB", float64(info.Size())/mib), "under 20 MiB", info.Size() < 20*mib}}
	for _, measure := range []func(context.Context, string) ([]figure, error){crewReady, crewRestart, crewRequest, crewOverhead, crewOutput} {
		f, err := measure(ctx, program)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f...)
	}
	return figures, nil
}

// tells is a training that tells the time at which it runs, and ends with a code.
func tells(code int) []string {
	return []string{"sh", "-c", "echo began $(date +%s%N); exit " + strconv.Itoa(code)}
}

// crewReady measures from the start of pitcrew to the start of the training.
func crewReady(ctx context.Context, program string) ([]figure, error) {
	var took []time.Duration
	for range 50 {
		began := time.Now()
		cmd := exec.CommandContext(ctx, program, append([]string{"run", "--metadata=none", "--"}, tells(0)...)...) //nolint:gosec // our own words
		cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+filepath.Dir(program))
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(string(out), "began ")), 10, 64)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Unix(0, n).Sub(began))
	}
	p50, p99 := percentile(took, 50), percentile(took, 99)
	return []figure{{"pitcrew: started -> training runs, p50 / p99 of 50", fmt.Sprintf("%.2f / %.2f ms", ms(p50), ms(p99)), "under 50 ms", p99 < 50*time.Millisecond}}, nil
}

// crewRestart measures from one start of a training that ends at once to the next, under a lease: the life of the training
// itself, a shell that asks for the time, is in it.
func crewRestart(ctx context.Context, program string) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitcrew-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	c, err := startCrew(ctx, program, []string{
		"--backoff=0", "--backoff-max=0", "--restarts=1000", "--report=none", "--checkpoint-dir=file://" + dir,
	}, tells(1))
	if err != nil {
		return nil, err
	}
	defer c.stop()
	last, err := c.told("began")
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for range 100 {
		next, err := c.told("began")
		if err != nil {
			return nil, err
		}
		took, last = append(took, next.Sub(last)), next
	}
	p50, p99 := percentile(took, 50), percentile(took, 99)
	return []figure{{"pitcrew: exit -> new training, p50 / p99 of 100", fmt.Sprintf("%.2f / %.2f ms", ms(p50), ms(p99)), "under 50 ms", p99 < 50*time.Millisecond}}, nil
}

// crewRequest measures from the metadata server's answer to the signal at the training.
func crewRequest(ctx context.Context, program string) ([]figure, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c, err := startCrew(ctx, program, []string{"--report=none"}, []string{self, traineeArgument})
	if err != nil {
		return nil, err
	}
	defer c.stop()
	if _, err := c.told("began"); err != nil {
		return nil, err
	}
	var took []time.Duration
	for n := range 300 {
		value, err := json.Marshal(events.CrewRequest{
			Schema: events.Schema, SaveID: strconv.Itoa(n), Action: events.ActionSave, Mode: events.SaveSignal, By: time.Now().Add(time.Minute),
		})
		if err != nil {
			return nil, err
		}
		c.server.Set("instance/attributes/"+events.MetadataRequest, string(value))
		at, err := c.told("asked")
		if err != nil {
			return nil, err
		}
		answers := c.server.Answers()
		took = append(took, at.Sub(answers[len(answers)-1].At))
	}
	p50, p99 := percentile(took, 50), percentile(took, 99)
	return []figure{{"pitcrew: metadata server answers -> signal at the training, p50 / p99 of 300", fmt.Sprintf("%.2f / %.2f ms", ms(p50), ms(p99)), "under 20 ms", p99 < 20*time.Millisecond}}, nil
}

// crewOverhead measures what a crew takes while nothing happens: a lease, a metadata server, a progress file, reports that
// nobody takes. The two processes share their program, so memory is counted by its share (PSS), and told as it is (RSS).
func crewOverhead(ctx context.Context, program string) ([]figure, error) {
	dir, err := os.MkdirTemp("", "pitcrew-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	step := filepath.Join(dir, "step")
	c, err := startCrew(ctx, program, []string{
		"--checkpoint-dir=file://" + dir + "/checkpoints", "--progress-file=" + step, "--logging-endpoint=127.0.0.1:1",
	}, []string{"sh", "-c", "echo began $(date +%s%N); while :; do date +%s > " + step + "; sleep 1; done"})
	if err != nil {
		return nil, err
	}
	defer c.stop()
	if _, err := c.told("began"); err != nil {
		return nil, err
	}
	pids := []int{c.cmd.Process.Pid, parentIn(c.state)}
	const settle, window = 5 * time.Second, 30 * time.Second
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	before, began := cpu(pids), time.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	share := float64(cpu(pids)-before) / float64(time.Since(began))
	pss, rss := footprint(pids)
	return []figure{
		{"pitcrew: of one core, over 30 s", fmt.Sprintf("%.3f %%", 100*share), "under 0.1 %", share < 0.001},
		{"pitcrew: memory of both processes, PSS (RSS)", fmt.Sprintf("%.1f (%.1f) MiB", float64(pss)/1024, float64(rss)/1024), "under 30 MiB", pss < 30*1024},
	}, nil
}

// parentIn is the training's parent, as the crew wrote it down.
func parentIn(state string) int {
	var r struct {
		Parent struct {
			PID int `json:"pid"`
		} `json:"parent"`
	}
	raw, err := os.ReadFile(filepath.Join(state, "training.json"))
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return 0
	}
	return r.Parent.PID
}

// cpu is the time that processes have run.
func cpu(pids []int) (sum time.Duration) {
	for _, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			continue
		}
		for _, f := range files {
			raw, err := os.ReadFile(f)
			if err != nil {
				continue
			}
			ran, _, _ := strings.Cut(string(raw), " ")
			if n, err := strconv.ParseInt(ran, 10, 64); err == nil {
				sum += time.Duration(n)
			}
		}
	}
	return sum
}

// footprint is what processes have, in KiB.
func footprint(pids []int) (pss, rss int64) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if len(f) < 2 {
				continue
			}
			n, err := strconv.ParseInt(f[1], 10, 64)
			switch {
			case err != nil:
			case f[0] == "Pss:":
				pss += n
			case f[0] == "Rss:":
				rss += n
			}
		}
	}
	return pss, rss
}

// crewOutput measures how fast output passes where it is read, for steps and the last lines.
func crewOutput(ctx context.Context, program string) ([]figure, error) {
	const size = 1 << 30
	cmd := exec.CommandContext(ctx, program, "run", "--metadata=none", "--step-pattern=maxtext", "--", //nolint:gosec // our own words
		"sh", "-c", fmt.Sprintf("yes 'completed step: 48213, seconds: 0.634, TFLOP/s/device: 101.2, loss: 2.113' | head -c %d", size))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close() //nolint:errcheck // nothing was kept
	cmd.Stdout, cmd.Env = null, append(os.Environ(), "STATE_DIRECTORY="+filepath.Dir(program))
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	rate := float64(size) / (1 << 20) / time.Since(began).Seconds()
	return []figure{{"pitcrew: output that is read, 1 GiB", fmt.Sprintf("%.0f MiB/s", rate), "", true}}, nil
}
