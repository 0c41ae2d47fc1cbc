package servicebustest

import (
	"bufio"
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
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	variable     = "SERVICEBUS_EMULATOR_BIN"
	startTimeout = 30 * time.Second
)

// emulator is a process. It ends when its standard input is closed, so it does not outlive the tests.
type emulator struct {
	control
	ready struct {
		Event, AMQP, AMQPS, HTTP string
		CACertificate            string `json:"ca_certificate"`
		PID                      int
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

// Embed sets the program of the emulator; a module that contains one calls it when it is imported.
func Embed(program []byte) {
	embedded = program
}

// shared returns the emulator of this test binary with these options, and starts it on the first call.
func shared(options []string) (*emulator, error) {
	once := sync.OnceValues(func() (*emulator, error) { return start(options) })
	startOnce, _ := started.LoadOrStore(strings.Join(options, "\x00"), once)
	running, err := startOnce.(func() (*emulator, error))()
	if err != nil {
		return nil, fmt.Errorf("the emulator did not start: %w; check its options and %s", err, variable)
	}
	return running, nil
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
	running := &emulator{ended: make(chan struct{})}
	running.command = exec.Command(program, append([]string{"--for-tests"}, options...)...)
	running.command.Stderr = &running.stderr
	if running.stdin, err = running.command.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := running.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := running.command.Start(); err != nil {
		return nil, err
	}
	timer := time.AfterFunc(startTimeout, func() { _ = running.command.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadBytes('\n')
	timer.Stop()
	if json.Unmarshal(line, &running.ready) != nil || running.ready.Event != "ready" {
		_ = running.command.Process.Kill()
		_ = running.command.Wait()
		return nil, errors.New(cmp.Or(running.errorLines()[0], program+" is not the emulator's program"))
	}
	go func() {
		_ = running.command.Wait()
		close(running.ended)
	}()
	running.control = control{running.ready.HTTP, http.Client{Timeout: requestTimeout}, running.whyItEnded}
	return running, nil
}

// whyItEnded explains why the emulator does not respond.
func (running *emulator) whyItEnded() string {
	select {
	case <-running.ended:
		cause := running.command.ProcessState.String()
		message := fmt.Sprintf("the emulator ended (%s) during the test run: start the run again", cause)
		lines := running.errorLines()
		return strings.TrimSuffix(message+"; "+lines[len(lines)-1], "; ")
	case <-time.After(time.Second):
		return "the emulator is running but does not respond: stop the test run, and start it again"
	}
}

// errorLines are the lines of the emulator's standard error, or one empty line.
func (running *emulator) errorLines() []string {
	return strings.Split(strings.TrimSpace(running.stderr.String()), "\n")
}

// findProgram returns the program in SERVICEBUS_EMULATOR_BIN, else the embedded one, which it writes to this directory, else
// the one on PATH.
func findProgram(directory string) (string, error) {
	if named := os.Getenv(variable); named != "" {
		program, err := exec.LookPath(named)
		if err != nil {
			err = fmt.Errorf("%s is %s, which is not an executable file: correct the path, or unset it", variable, named)
		}
		return program, err
	}
	if embedded != nil {
		program := filepath.Join(directory, "servicebus-emulator")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		// A process forked meanwhile would keep the file open for writing, and the program could not be started.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		return program, os.WriteFile(program, embedded, 0o700)
	}
	program, err := exec.LookPath("servicebus-emulator")
	if err != nil {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		err = fmt.Errorf("no module for %s is imported, and PATH has no servicebus-emulator: import _ "+
			"\"servicebus-emulator.example/servicebustest/%s\", or build it with `cargo build --release -p "+
			"servicebus-emulator` and set %s to the program", platform, platform, variable)
	}
	return program, err
}
