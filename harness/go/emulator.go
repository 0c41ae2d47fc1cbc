package servicebustest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	variable     = "SERVICEBUS_EMULATOR_BIN"
	startSeconds = 30
)

var logLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+ +(WARN|INFO|DEBUG|TRACE) `)

// client waits for a response longer than an assertion may wait, which is ten minutes. It reuses no connection, because the
// emulator may close one just when the next request is sent.
var client = http.Client{Timeout: 11 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}

// emulator is a process. It ends when its standard input is closed, so it does not outlive the tests.
type emulator struct {
	ready struct {
		Event, AMQPS, HTTP, Version string
		CACertificate               string `json:"ca_certificate"`
		PID                         int
	}
	command *exec.Cmd
	stdin   io.Closer    // Referenced here because the process ends when it is closed.
	stderr  bytes.Buffer // Read only when the process has ended.
	ended   chan struct{}
}

// started maps the options of the emulators of this test binary to functions that start each of them once.
var started sync.Map

// embedded is the program in the module of this platform.
var embedded []byte

// version is the version of this module. A file that build adds sets it, because a test binary has no versions of modules.
var version string

// Embed sets the program of the emulator; a module that contains one calls it when it is imported.
func Embed(program []byte) { embedded = program }

// shared returns the emulator of this test binary with these options, and starts it on the first call.
func shared(t testing.TB, options []string) *emulator {
	t.Helper()
	once := sync.OnceValues(func() (*emulator, error) { return start(options) })
	startOnce, _ := started.LoadOrStore(strings.Join(options, "\x00"), once)
	running, err := startOnce.(func() (*emulator, error))()
	if err != nil {
		t.Fatalf("the emulator did not start: %v; check its options and %s", err, variable)
	}
	return running
}

func start(options []string) (*emulator, error) {
	temporary, err := os.MkdirTemp("", "servicebus-emulator")
	if err != nil {
		return nil, err
	}
	// The file is not needed while the program runs, except on Windows.
	defer os.RemoveAll(temporary)
	program, err := findProgram(temporary)
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, append([]string{"--for-tests"}, options...)...)
	stdin, stdinErr := command.StdinPipe()
	stdout, stdoutErr := command.StdoutPipe()
	if err := errors.Join(stdinErr, stdoutErr); err != nil {
		return nil, err
	}
	running := &emulator{command: command, stdin: stdin, ended: make(chan struct{})}
	command.Stderr = &running.stderr
	// Another process that has inherited standard error may keep it open. Less than whyItEnded waits.
	command.WaitDelay = time.Second / 2
	if err := command.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(startSeconds*time.Second, func() {
		_ = command.Process.Kill()
		_ = stdout.Close() // Another process that has inherited it may keep it open.
	})
	err = json.NewDecoder(stdout).Decode(&running.ready)
	inTime := timer.Stop()
	if err != nil || running.ready.Event != "ready" {
		_ = command.Process.Kill()
		_ = command.Wait()
		silent := program + " is not the emulator's program"
		if !inTime {
			silent = fmt.Sprintf("it was not ready within %d s", startSeconds)
		}
		return nil, errors.New(cmp.Or(running.firstError(), silent))
	}
	if version != "" && running.ready.Version != version {
		_ = command.Process.Kill()
		_ = command.Wait()
		return nil, fmt.Errorf("%s is version %s, but this module is version %s", program, running.ready.Version, version)
	}
	go func() {
		_ = command.Wait()
		close(running.ended)
	}()
	return running, nil
}

// ask sends a request to the control API and decodes the response into answer. A body is either JSON or a value to be encoded
// as JSON.
func (running *emulator) ask(method, path string, body, answer any) (err error) {
	content, isJSON := body.([]byte)
	if body != nil && !isJSON {
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	target := "http://" + running.ready.HTTP + "/$emulator/v1/" + path
	request, err := http.NewRequest(method, target, bytes.NewReader(content))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	var text []byte
	if err == nil {
		defer response.Body.Close()
		text, err = io.ReadAll(response.Body)
	}
	if err != nil {
		return fmt.Errorf("%s (%w)", running.whyItEnded(), err)
	}
	if response.StatusCode >= 400 {
		var failed struct{ Error struct{ Text string } }
		_ = json.Unmarshal(text, &failed)
		return errors.New(cmp.Or(failed.Error.Text, fmt.Sprintf("the emulator responded with %s: %s", response.Status, text)))
	}
	if len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// whyItEnded explains why the emulator does not respond.
func (running *emulator) whyItEnded() string {
	select {
	case <-running.ended:
		lines := running.errorLines()
		message := fmt.Sprintf("the emulator ended (%s) during the test run: start the run again; ", running.command.ProcessState)
		return strings.TrimSuffix(message+lines[len(lines)-1], "; ")
	case <-time.After(time.Second):
		return "the emulator is running but does not respond: stop the test run, and start it again"
	}
}

// firstError is the first line of the emulator's standard error that is not of its log, with the indented lines that follow
// it, or empty.
func (running *emulator) firstError() (message string) {
	for _, line := range running.errorLines() {
		text := strings.TrimSpace(line)
		if text == "" || message == "" && logLine.MatchString(line) {
			continue
		}
		if message != "" && !strings.HasPrefix(line, " ") {
			break
		}
		message = strings.TrimSpace(message + " " + text)
	}
	return message
}

// errorLines are the lines of the emulator's standard error, or one empty line.
func (running *emulator) errorLines() []string {
	return strings.Split(strings.TrimSpace(running.stderr.String()), "\n")
}

// findProgram returns the program in SERVICEBUS_EMULATOR_BIN, else the embedded one, which it writes to this directory, else
// the one on PATH.
func findProgram(directory string) (string, error) {
	named := os.Getenv(variable)
	if named == "" && embedded != nil {
		program := filepath.Join(directory, "servicebus-emulator")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		// A process forked meanwhile would keep the file open for writing, and the program could not be started.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		return program, os.WriteFile(program, embedded, 0o700)
	}
	program, err := exec.LookPath(cmp.Or(named, "servicebus-emulator"))
	if err != nil && named != "" {
		return "", fmt.Errorf("%s is %s, which is not an executable file: correct the path, or unset it", variable, named)
	}
	if err != nil {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		return "", fmt.Errorf("no module for %s is imported, and PATH has no servicebus-emulator: import _ "+
			"\"servicebus-emulator.example/servicebustest/%s\", or build it with `cargo build --release -p "+
			"servicebus-emulator` and set %s to the program", platform, platform, variable)
	}
	return program, nil
}
