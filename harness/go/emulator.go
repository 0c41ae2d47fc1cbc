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

// emulator is a process. It ends with its standard input, and so with the tests, however these end.
type emulator struct {
	control
	ready struct {
		Event, AMQP, AMQPS, HTTP string
		CACertificate            string `json:"ca_certificate"`
		PID                      int
	}
	command *exec.Cmd
	stdin   io.Closer    // Held, for the process ends when it is closed.
	stderr  bytes.Buffer // Read once the process has ended.
	ended   chan struct{}
}

// started are the emulators of this test binary: functions that start each once, by its options.
var started sync.Map

// embedded is the program that a module of this platform has in it.
var embedded []byte

// Embed names the program of the emulator; the modules that have one in them do that when they are imported.
func Embed(program []byte) {
	embedded = program
}

// shared is the emulator of this test binary with these options, started when it is first asked for.
func shared(options []string) (*emulator, error) {
	once := sync.OnceValues(func() (*emulator, error) { return start(options) })
	begin, _ := started.LoadOrStore(strings.Join(options, "\x00"), once)
	running, err := begin.(func() (*emulator, error))()
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
	// A program that runs needs no file, but on Windows.
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
	late := time.AfterFunc(startTimeout, func() { _ = running.command.Process.Kill() })
	line, _ := bufio.NewReader(stdout).ReadBytes('\n')
	late.Stop()
	if json.Unmarshal(line, &running.ready) != nil || running.ready.Event != "ready" {
		_ = running.command.Process.Kill()
		_ = running.command.Wait()
		return nil, errors.New(cmp.Or(running.said()[0], program+" is no emulator"))
	}
	go func() {
		_ = running.command.Wait()
		close(running.ended)
	}()
	running.control = control{running.ready.HTTP, http.Client{Timeout: longest}, running.whyItEnded}
	return running, nil
}

// whyItEnded is what became of it, in a sentence.
func (running *emulator) whyItEnded() string {
	select {
	case <-running.ended:
		cause := running.command.ProcessState.String()
		sentence := fmt.Sprintf("the emulator ended (%s) in the middle of the run: start the run again", cause)
		said := running.said()
		return strings.TrimSuffix(sentence+"; "+said[len(said)-1], "; ")
	case <-time.After(time.Second):
		return "the emulator runs and does not answer: end the run, and start it again"
	}
}

// said are the lines of its standard error; it is one without text where there are none.
func (running *emulator) said() []string {
	return strings.Split(strings.TrimSpace(running.stderr.String()), "\n")
}

// findProgram is the program that the environment names, else the embedded one, which is written to this directory, else the
// one on the path.
func findProgram(directory string) (string, error) {
	if named := os.Getenv(variable); named != "" {
		program, err := exec.LookPath(named)
		if err != nil {
			err = fmt.Errorf("%s names %s, which is no program: name one, or unset it", variable, named)
		}
		return program, err
	}
	if embedded != nil {
		program := filepath.Join(directory, "servicebus-emulator")
		if runtime.GOOS == "windows" {
			program += ".exe"
		}
		// A process that is forked meanwhile would hold the file open, and it could not be run.
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		return program, os.WriteFile(program, embedded, 0o700)
	}
	program, err := exec.LookPath("servicebus-emulator")
	if err != nil {
		platform := runtime.GOOS + "_" + runtime.GOARCH
		err = fmt.Errorf("no module for %s is imported, and there is no servicebus-emulator on the path: import _ "+
			"\"servicebus-emulator.example/servicebustest/%s\", or build it with `cargo build --release -p "+
			"servicebus-emulator` and name it in %s", platform, platform, variable)
	}
	return program, err
}
