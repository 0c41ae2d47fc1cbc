package tests

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"servicebus-emulator.example/servicebustest"
)

// Output of failing tests, and errors for invalid input. This program runs those tests in a separate process.

const sample = "SERVICEBUS_SAMPLE"

// run runs samples that must fail, and returns their output.
func run(t *testing.T, name string, environment ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestSamples$/"+name)
	command.Env = append(append(os.Environ(), sample+"=1"), environment...)
	output, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("%s passes:\n%s", name, output)
	}
	return string(output)
}

// expectLines expects lines in this order; * matches any text.
func expectLines(t *testing.T, output string, lines ...string) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(lines, "\n")), `\*`, "(?s:.*)")
	if !regexp.MustCompile(pattern).MatchString(output) {
		t.Errorf("%s\nlacks\n%s", output, strings.Join(lines, "\n"))
	}
}

func TestSamples(t *testing.T) {
	if os.Getenv(sample) == "" {
		t.Skip("run by other tests")
	}
	new := func(t *testing.T) *servicebustest.Bus {
		t.Helper()
		return servicebustest.New(t, servicebustest.Queue("a"), servicebustest.Queue("b"))
	}
	t.Run("empty", func(t *testing.T) { new(t) })
	t.Run("expired", func(t *testing.T) {
		bus := new(t)
		hour := time.Hour
		send(t, bus, "a", azservicebus.Message{TimeToLive: &hour})
		bus.Advance(hour)
		if bus.Counts("a")["active"] != 1 {
			t.Error("the message has expired")
		}
	})
	t.Run("never", func(t *testing.T) {
		new(t).Faults.On("complete", servicebustest.Fields{"entity": "a"}).LoseLock()
	})
	t.Run("near", func(t *testing.T) {
		bus := new(t)
		bus.Faults.On("send", servicebustest.Fields{"entity": "a", "nth": 2}).Reject("amqp:not-allowed")
		send(t, bus, "a", azservicebus.Message{})
		send(t, bus, "b", azservicebus.Message{})
	})
	t.Run("fatal", func(t *testing.T) {
		new(t).Faults.On("complete").LoseReply()
		t.Fatal("another")
	})
	t.Run("panics", func(t *testing.T) {
		new(t).Faults.On("complete").LoseReply()
		panic("another")
	})
	t.Run("skipped", func(t *testing.T) {
		new(t).Faults.On("complete").LoseReply()
		t.Skip("not here")
	})
	t.Run("field", func(t *testing.T) { new(t).Faults.On("send", servicebustest.Fields{"colour": 1}).ServerBusy() })
	t.Run("effect", func(t *testing.T) { new(t).Faults.On("send").Apply("lose-lok") })
	t.Run("entity", func(t *testing.T) { new(t).Counts("nowhere") })
	t.Run("receiver", func(t *testing.T) { new(t).WaitForReceiver("a", 20*time.Millisecond) })
	t.Run("file", func(t *testing.T) { servicebustest.New(t, servicebustest.File("nowhere.json")) })
	t.Run("both", func(t *testing.T) {
		servicebustest.New(t, servicebustest.JSON("{}"), servicebustest.Queue("a"))
	})
	t.Run("tier", func(t *testing.T) { servicebustest.New(t, servicebustest.EmulatorOptions("--tier", "gold")) })
	t.Run("subtests", func(t *testing.T) {
		bus := new(t)
		for _, name := range []string{"one", "two"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				bus.In(t).Faults.On("complete").LoseLock().Remove()
				bus.In(t).WaitForReceiver("a", 0)
			})
		}
	})
	t.Run("topology", func(t *testing.T) {
		servicebustest.New(t,
			servicebustest.Queue("a", servicebustest.Fields{"MaxDeliveries": 3}),
			servicebustest.Queue("b", servicebustest.Fields{"LockDuration": time.Second}))
	})
	t.Run("option", func(t *testing.T) { servicebustest.New(t, servicebustest.EmulatorOptions("--amqp-prot", "1")) })
	t.Run("port", func(t *testing.T) {
		servicebustest.New(t, servicebustest.EmulatorOptions("--amqp-port", os.Getenv("PORT")))
	})
	t.Run("dying", func(t *testing.T) {
		bus := new(t)
		process, err := os.FindProcess(bus.PID())
		if err != nil || process.Kill() != nil {
			t.Fatal("the emulator cannot be killed")
		}
		bus.Counts("a")
	})
	t.Run("expected", func(t *testing.T) {
		bus := new(t)
		send(t, bus, "a", azservicebus.Message{})
		bus.Expect("a", "dead_lettered", servicebustest.Fields{"reason": "late", "within": 100 * time.Millisecond})
	})
	t.Run("kind", func(t *testing.T) { new(t).Expect("a", "bought") })
	t.Run("colour", func(t *testing.T) { new(t).Expect("a", "completed", servicebustest.Fields{"colour": "red"}) })
	t.Run("bytes", func(t *testing.T) {
		bus := new(t)
		send(t, bus, "a", azservicebus.Message{})
		if err := complete(t, bus, "a"); err != nil {
			t.Fatal(err)
		}
		bus.Expect("a", "not_completed", servicebustest.Fields{"body": []byte("12")})
	})
	t.Run("invalid", func(t *testing.T) { new(t).Expect("a", "not_completed", servicebustest.Fields{"body": []byte{255}}) })
	t.Run("nested", func(t *testing.T) {
		new(t).Expect("a", "not_completed", servicebustest.Fields{"body": map[string]any{"contains": []byte{254}}})
	})
	t.Run("json", func(t *testing.T) {
		new(t).Expect("a", "not_completed", servicebustest.Fields{"body_json": []byte("12")})
	})
	t.Run("waiting", func(t *testing.T) {
		println(new(t).HTTPAddress())
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(3)
	})
}

func TestAFailureShowsTheTimeline(t *testing.T) {
	t.Parallel()
	expectLines(t, run(t, "expired"),
		"failures_test.go:*: the message has expired",
		"*timeline of test-1",
		"*+*.* s*sent*o-17, by *, in a",
		"*clock advanced  by the test, 3600 s",
		"*+3600.* s*expired         o-17, in a*")
}

func TestAFaultThatNeverFiredFailsATestThatPassed(t *testing.T) {
	t.Parallel()
	expectLines(t, run(t, "never"),
		`*a fault never fired: {"effect":"lose-lock","entity":"a",*"operation":"complete",*`,
		"*  no completion came",
		"*  scripted at *failures_test.go:*",
		"*hint: let the test perform the operation of the fault, or remove the fault",
		"*timeline of test-1*nothing happened")
	expectLines(t, run(t, "near"), "  only 1 send came, and 1 in other entities", "*  scripted at *")
	for _, sample := range []string{"fatal", "panics"} {
		output := run(t, sample)
		expectLines(t, output, "*another*")
		expectLines(t, output, "timeline of test-1")
		if strings.Contains(output, "never fired") {
			t.Error(output)
		}
	}
}

func TestAFaultThatFiredOrWasRemovedIsNoFailure(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	send(t, bus, "queue.1", azservicebus.Message{})
	late := bus.Faults.On("complete", servicebustest.Fields{"entity": "queue.1"}).LoseLock()
	if err := complete(t, bus, "queue.1"); err == nil {
		t.Error("the message was completed")
	}
	if late.Hits() != 1 {
		t.Error(late.Hits())
	}
	bus.Faults.On("complete").LoseReply().Remove()
}

func TestTheEmulatorEvaluatesAssertions(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	send(t, bus, "queue.1", azservicebus.Message{})
	bus.Expect("queue.1", "message_count", servicebustest.Fields{"active": 1, "dead_letter": 0})
	bus.Expect("queue.1", "not_delivered")
	if err := complete(t, bus, "queue.1"); err != nil {
		t.Error(err)
	}
	part := servicebustest.Fields{"contains": "1"}
	bus.Expect("queue.1", "completed", servicebustest.Fields{"message_id": "o-17", "body": part})

	bus.Expect("queue.1", "completed", servicebustest.Fields{"body": []byte("12")})
	bus.Expect("queue.1", "completed", servicebustest.Fields{"body": servicebustest.Fields{"contains": []byte("2")}})
	bus.Expect("queue.1", "completed", servicebustest.Fields{"body_json": json.RawMessage("12")})
	session := "s-1"
	carts := servicebustest.New(t, servicebustest.Queue("carts", servicebustest.Fields{"RequiresSession": true}))
	for range 3 {
		send(t, carts, "carts", azservicebus.Message{SessionID: &session})
	}
	bodies := []any{[]byte("12"), servicebustest.Fields{"contains": []byte("1")}, "12"}
	carts.Expect("carts", "session_order", servicebustest.Fields{"session": session, "bodies": bodies})

	output := run(t, "(expected|kind|colour|bytes|invalid|nested|json)")
	expectLines(t, output, `failures_test.go:*: a: expected 1 message dead-lettered with reason "late", found none within 0.1 s`,
		"*timeline of *", "*hint: *")
	expectLines(t, output, "failures_test.go:*: *bought*dead_lettered")
	expectLines(t, output, "failures_test.go:*: *colour*message_id")
	expectLines(t, output, "failures_test.go:*: a: expected no message completed*")
	expectLines(t, output, "failures_test.go:*: body is the bytes ff, which are not UTF-8; it takes a text")
	expectLines(t, output, "failures_test.go:*: body is the bytes fe, which are not UTF-8; it takes a text")
	expectLines(t, output, "failures_test.go:*: body_json contains bytes, which JSON does not have; it takes JSON")
}

func TestAnErrorInASubtestFailsTheSubtest(t *testing.T) {
	t.Parallel()
	output := run(t, "subtests")
	for _, name := range []string{"one", "two"} {
		expectLines(t, output, "failures_test.go:*: a: expected 1 receiver to be attached*--- FAIL: TestSamples/subtests/"+name+" ")
	}
	if strings.Contains(output, "panic") {
		t.Error(output)
	}
}

func TestMistakesHaveReadableErrors(t *testing.T) {
	t.Parallel()
	output := run(t, "(field|effect|entity|receiver|file|topology|option|both|tier)")
	expectLines(t, output, "failures_test.go:*: File and JSON declare the whole topology: pass no Queue, Topic or Settings beside them")
	expectLines(t, output, "failures_test.go:*: the emulator did not start: error: *'gold'* [possible values: basic, standard, premium]; *")
	expectLines(t, output, "failures_test.go:*: *unknown field `colour`, expected one of `operation`, *")
	expectLines(t, output, "failures_test.go:*: *lose-lok*")
	expectLines(t, output, "failures_test.go:*: *nowhere*")
	expectLines(t, output, "failures_test.go:*: a: expected 1 receiver to be attached, found none within 0.02 s")
	expectLines(t, output, "failures_test.go:*: open nowhere.json: no such file or directory")
	expectLines(t, output, "failures_test.go:*: the topology cannot be served: *.Queues[0].Properties.MaxDeliveries *did you mean "+
		`"MaxDeliveryCount"?; *.Queues[1].Properties.LockDuration "PT1S": 5 s (PT5S) to 5 min (PT5M)`)
	expectLines(t, output, "failures_test.go:*: the emulator did not start: *; check its options and SERVICEBUS_EMULATOR_BIN")
}

func TestVariablesForAnotherEmulatorAreIgnored(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0], "-test.run", "^TestSamples$/empty")
	command.Env = append(os.Environ(), sample+"=1", "SERVICEBUS_EMULATOR_DATA=/dev/null/data",
		"SERVICEBUS_EMULATOR_CONFIG=none.json", "SERVICEBUS_EMULATOR_HTTPS_PORT=1", "SERVICEBUS_EMULATOR_CONTROL_TOKEN=secret")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s", output)
	}
}

func TestAPortInUseHasAReadableError(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	expectLines(t, run(t, "port", "PORT="+port), "the emulator did not start: cannot listen on 127.0.0.1:"+port+": Address already in use *")
}

func TestAnEmulatorThatDiesFailsItsTestAndLaterOnesWithAReadableError(t *testing.T) {
	t.Parallel()
	const message = "the emulator ended (signal: killed) during the test run: start the run again*"
	expectLines(t, run(t, "(dying|topology)"), "failures_test.go:*: "+message)
	expectLines(t, run(t, "(dying|waiting)"), message+"failures_test.go:*: "+message)
}

func TestAProgramThatIsNotTheEmulatorIsAnError(t *testing.T) {
	t.Parallel()
	for program, message := range map[string]string{
		"/nowhere": "SERVICEBUS_EMULATOR_BIN is /nowhere, which is not an executable file: correct the path, or unset it",
		"true":     "the emulator did not start: */true is not the emulator's program; check its options and SERVICEBUS_EMULATOR_BIN",
		"cat":      "the emulator did not start: *cat: unrecognized option *; check its options and SERVICEBUS_EMULATOR_BIN",
	} {
		expectLines(t, run(t, "empty", "SERVICEBUS_EMULATOR_BIN="+program), message)
	}
}

func TestAScriptThatIsNotTheEmulatorIsRefusedInTime(t *testing.T) {
	t.Parallel()
	for script, message := range map[string]string{
		`echo '{"event":"ready","version":"9.9.9"}'; cat`: "the emulator did not start: */program is version 9.9.9, but this module is " +
			"version *; check its options and SERVICEBUS_EMULATOR_BIN",
		"echo wrong >&2; echo not ready; sleep 45 & wait": "the emulator did not start: wrong; check its options and *",
		"sleep 45 & wait": "the emulator did not start: it was not ready within 30 s; check its options and *",
	} {
		program := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		expectLines(t, run(t, "empty", "SERVICEBUS_EMULATOR_BIN="+program), message)
		if elapsed := time.Since(began); elapsed > 40*time.Second {
			t.Error(elapsed)
		}
	}
}

func TestWithoutAProgramTheErrorSaysHowToBuildOne(t *testing.T) {
	t.Parallel()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	expectLines(t, run(t, "empty", "PATH=/nowhere", "SERVICEBUS_WITHOUT_PROGRAM=1"), "no module for "+platform+" is imported, and "+
		"PATH has no servicebus-emulator: import _ \"servicebus-emulator.example/servicebustest/"+platform+"\", or "+
		"build it with `cargo build --release -p servicebus-emulator` and set SERVICEBUS_EMULATOR_BIN to the program")
}

func TestMain(m *testing.M) {
	if os.Getenv("SERVICEBUS_WITHOUT_PROGRAM") != "" {
		servicebustest.Embed(nil)
	}
	os.Exit(m.Run())
}

// The emulator ends with the test run, however the run ends.
func TestTheEmulatorEndsWithTheRun(t *testing.T) {
	t.Parallel()
	for _, end := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM, nil} {
		temporary := t.TempDir()
		command := exec.Command(os.Args[0], "-test.run", "^TestSamples$/waiting")
		command.Env = append(os.Environ(), sample+"=1", "TMPDIR="+temporary)
		input, _ := command.StdinPipe()
		errors, _ := command.StderrPipe()
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		address, err := bufio.NewReader(errors).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if files, err := os.ReadDir(temporary); err != nil || len(files) > 0 {
			t.Error("the program was left in the temporary directory: ", files, err)
		}
		client := http.Client{Timeout: 30 * time.Second}
		response, err := client.Get("http://" + strings.TrimSpace(address) + "/$emulator/v1/hold")
		if err != nil {
			t.Fatal(err)
		}
		if end == nil {
			_, _ = input.Write([]byte("\n"))
		} else {
			_ = command.Process.Signal(end)
		}
		// The response ends when the emulator ends, or fails with a timeout.
		if _, err := io.ReadAll(response.Body); err != nil && strings.Contains(err.Error(), "Timeout") {
			t.Error(end, err)
		}
		_ = command.Wait()
	}
}
