package tests

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"servicebus-emulator.example/servicebustest"
)

// What failing tests say, and what is said of mistakes. Those tests are run by this program, in a process of their own.

const sample = "SERVICEBUS_SAMPLE"

// run runs samples that must not pass, and returns what they print.
func run(t *testing.T, name string, environment ...string) string {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestSamples$/"+name)
	command.Env = append(append(os.Environ(), sample+"=1"), environment...)
	printed, err := command.CombinedOutput()
	if err == nil {
		t.Errorf("%s passes:\n%s", name, printed)
	}
	return string(printed)
}

// says expects lines in their order; * is any text.
func says(t *testing.T, printed string, lines ...string) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(lines, "\n")), `\*`, "(?s:.*)")
	if !regexp.MustCompile(pattern).MatchString(printed) {
		t.Errorf("%s\nlacks\n%s", printed, strings.Join(lines, "\n"))
	}
}

func TestSamples(t *testing.T) {
	if os.Getenv(sample) == "" {
		t.Skip("for the other tests")
	}
	new := func(t *testing.T) *servicebustest.Bus {
		t.Helper()
		return servicebustest.New(t, servicebustest.Queue("a"), servicebustest.Queue("b"))
	}
	t.Run("free", func(t *testing.T) { new(t) })
	t.Run("expired", func(t *testing.T) {
		bus := new(t)
		hour := time.Hour
		send(t, bus, "a", azservicebus.Message{TimeToLive: &hour})
		bus.Advance(hour)
		if bus.Counts("a")["active"] != 1 {
			t.Error("it is not there any more")
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
	t.Run("skipped", func(t *testing.T) {
		new(t).Faults.On("complete").LoseReply()
		t.Skip("not here")
	})
	t.Run("field", func(t *testing.T) { new(t).Faults.On("send", servicebustest.Fields{"colour": 1}).ServerBusy() })
	t.Run("effect", func(t *testing.T) { new(t).Faults.On("send").Apply("lose-lok") })
	t.Run("entity", func(t *testing.T) { new(t).Counts("nowhere") })
	t.Run("receiver", func(t *testing.T) { new(t).WaitForReceiver("a", 20*time.Millisecond) })
	t.Run("file", func(t *testing.T) { servicebustest.New(t, servicebustest.File("nowhere.json")) })
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
			t.Fatal("it cannot be killed")
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
	t.Run("json", func(t *testing.T) {
		new(t).Expect("a", "not_completed", servicebustest.Fields{"body_json": []byte("12")})
	})
	t.Run("waiting", func(t *testing.T) {
		println(new(t).HTTPAddress())
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(3)
	})
}

func TestAFailureHasTheTimeline(t *testing.T) {
	t.Parallel()
	says(t, run(t, "expired"),
		"failures_test.go:*: it is not there any more",
		"*timeline of test-1",
		"*+*.* s*sent*o-17, by *, in a",
		"*clock advanced  by the test, 3600 s",
		"*+3600.* s*expired         o-17, in a*")
}

func TestAFaultThatNeverFiredFailsATestThatPassed(t *testing.T) {
	t.Parallel()
	says(t, run(t, "never"),
		`*a fault never fired: {"effect":"lose-lock","entity":"a",*"operation":"complete",*`,
		"*  no completion came",
		"*  scripted at *failures_test.go:*",
		"*hint: have the test do what the fault is on, or take the fault out",
		"*timeline of test-1*nothing happened")
	says(t, run(t, "near"), "  only 1 send came, and 1 in other entities", "*  scripted at *")
	if printed := run(t, "fatal"); strings.Contains(printed, "never fired") {
		t.Error(printed)
	}
}

func TestAFaultThatFiredOrWasTakenOutIsNoFailure(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	send(t, bus, "queue.1", azservicebus.Message{})
	late := bus.Faults.On("complete", servicebustest.Fields{"entity": "queue.1"}).LoseLock()
	if err := complete(t, bus, "queue.1"); err == nil {
		t.Error("it was completed")
	}
	if late.Hits() != 1 {
		t.Error(late.Hits())
	}
	bus.Faults.On("complete").LoseReply().Remove()
}

func TestWhatIsExpectedIsJudgedByTheEmulator(t *testing.T) {
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

	printed := run(t, "(expected|kind|colour|bytes|invalid|json)")
	says(t, printed, `failures_test.go:*: a: expected 1 message dead-lettered with reason "late", found none within 0.1 s`,
		"*timeline of *", "*hint: *")
	says(t, printed, "failures_test.go:*: *bought*dead_lettered")
	says(t, printed, "failures_test.go:*: *colour*message_id")
	says(t, printed, "failures_test.go:*: a: expected no message completed*")
	says(t, printed, "failures_test.go:*: body is the bytes ff, which is no UTF-8; it takes a text")
	says(t, printed, "failures_test.go:*: body_json has bytes in it, which JSON has not; it takes JSON")
}

func TestMistakesAreSentences(t *testing.T) {
	t.Parallel()
	printed := run(t, "(field|effect|entity|receiver|file|topology|option)")
	says(t, printed, "failures_test.go:*: *unknown field `colour`, expected one of `operation`, *")
	says(t, printed, "failures_test.go:*: *lose-lok*")
	says(t, printed, "failures_test.go:*: *nowhere*")
	says(t, printed, "failures_test.go:*: a: expected 1 receiver to be attached, found none within 0.02 s")
	says(t, printed, "failures_test.go:*: open nowhere.json: no such file or directory")
	says(t, printed, "failures_test.go:*: the topology cannot be served: *.Queues[0].Properties.MaxDeliveries *did you mean "+
		`"MaxDeliveryCount"?; *.Queues[1].Properties.LockDuration "PT1S": 5 s (PT5S) to 5 min (PT5M)`)
	says(t, printed, "failures_test.go:*: the emulator did not start: *; check its options and SERVICEBUS_EMULATOR_BIN")
}

func TestSettingsOfAnEmulatorBesideTheTestsAreNotTheirs(t *testing.T) {
	t.Parallel()
	command := exec.Command(os.Args[0], "-test.run", "^TestSamples$/free")
	command.Env = append(os.Environ(), sample+"=1", "SERVICEBUS_EMULATOR_DATA=/dev/null/data",
		"SERVICEBUS_EMULATOR_CONFIG=none.json", "SERVICEBUS_EMULATOR_HTTPS_PORT=1", "SERVICEBUS_EMULATOR_CONTROL_TOKEN=secret")
	if printed, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s", printed)
	}
}

func TestAPortInUseIsASentence(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	says(t, run(t, "port", "PORT="+port), "the emulator did not start: cannot listen on 127.0.0.1:"+port+": Address already in use *")
}

func TestAnEmulatorThatDiesIsASentenceInItsTestAndInLaterOnes(t *testing.T) {
	t.Parallel()
	const sentence = "the emulator ended (signal: killed) in the middle of the run: start the run again*"
	says(t, run(t, "(dying|topology)"), "failures_test.go:*: "+sentence)
	says(t, run(t, "(dying|waiting)"), sentence+"failures_test.go:*: "+sentence)
}

func TestWhatIsNoEmulatorIsRefused(t *testing.T) {
	t.Parallel()
	for program, sentence := range map[string]string{
		"/nowhere": "SERVICEBUS_EMULATOR_BIN names /nowhere, which is no program: name one, or unset it",
		"true":     "the emulator did not start: */true is no emulator; check its options and SERVICEBUS_EMULATOR_BIN",
		"cat":      "the emulator did not start: *cat: unrecognized option *; check its options and SERVICEBUS_EMULATOR_BIN",
	} {
		says(t, run(t, "free", "SERVICEBUS_EMULATOR_BIN="+program), sentence)
	}
}

func TestWithoutAProgramItSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	platform := runtime.GOOS + "_" + runtime.GOARCH
	says(t, run(t, "free", "PATH=/nowhere", "SERVICEBUS_WITHOUT_PROGRAM=1"), "no module for "+platform+" is imported, and "+
		"there is no servicebus-emulator on the path: import _ \"servicebus-emulator.example/servicebustest/"+platform+"\", or "+
		"build it with `cargo build --release -p servicebus-emulator` and name it in SERVICEBUS_EMULATOR_BIN")
}

func TestMain(m *testing.M) {
	if os.Getenv("SERVICEBUS_WITHOUT_PROGRAM") != "" {
		servicebustest.Embed(nil)
	}
	os.Exit(m.Run())
}

// The emulator ends with the tests, however these end.
func TestAnEmulatorEndsWithItsRun(t *testing.T) {
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
		if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
			t.Error("the program stays in the temporary directory: ", left, err)
		}
		client := http.Client{Timeout: 30 * time.Second}
		held, err := client.Get("http://" + strings.TrimSpace(address) + "/$emulator/v1/hold")
		if err != nil {
			t.Fatal(err)
		}
		if end == nil {
			_, _ = input.Write([]byte("\n"))
		} else {
			_ = command.Process.Signal(end)
		}
		// It ends with the emulator, or this fails after a while.
		if _, err := io.ReadAll(held.Body); err != nil && strings.Contains(err.Error(), "Timeout") {
			t.Error(end, err)
		}
		_ = command.Wait()
	}
}
