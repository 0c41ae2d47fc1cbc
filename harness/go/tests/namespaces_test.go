package tests

import (
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"servicebus-emulator.example/servicebustest"
)

// A test has its own namespace, with the declared entities.

func TestWithoutATopologyThereIsOneQueue(t *testing.T) {
	t.Parallel()
	servicebustest.New(t).Counts("queue.1")
}

func TestWithSettingsOnlyThereIsOneQueue(t *testing.T) {
	t.Parallel()
	servicebustest.New(t, servicebustest.Settings(servicebustest.Fields{"Tier": "premium"})).Counts("queue.1")
}

func TestDeclaredByOptions(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t,
		servicebustest.Queue("plain"),
		servicebustest.Queue("carts", servicebustest.Fields{"RequiresSession": true, "LockDuration": 90 * time.Second}),
		servicebustest.Topic("prices",
			servicebustest.Subscription("high", nil, servicebustest.SQL("high", "price > 10")),
			servicebustest.Subscription("orders", nil, servicebustest.Correlation("o", servicebustest.Fields{"Label": "order"})),
			servicebustest.Subscription("all", servicebustest.Fields{"MaxDeliveryCount": 3})),
		servicebustest.Settings(servicebustest.Fields{"Tier": "premium"}))
	bus.Counts("plain")
	bus.Counts("prices/Subscriptions/all")
	high := bus.Explain("prices/Subscriptions/high", servicebustest.Fields{"price": 3}, nil)["high"]
	if high.Matched || high.Reason.Expression != "price > 10" {
		t.Error(high)
	}
	if rules := bus.Explain("prices/Subscriptions/orders", nil, servicebustest.Fields{"Label": "order"}); !rules["o"].Matched {
		t.Error(rules)
	}
	cart := "cart-7"
	send(t, bus, "carts", azservicebus.Message{SessionID: &cart})
	if sessions := bus.Sessions("carts"); len(sessions) != 1 || sessions[0].ID != cart || sessions[0].Active != 1 {
		t.Error(sessions)
	}
	bus.Reset()
	if sessions := bus.Sessions("carts"); len(sessions) != 0 {
		t.Error(sessions)
	}
}

func TestDeclaredByAFile(t *testing.T) {
	t.Parallel()
	servicebustest.New(t, servicebustest.File("testdata/declared.json")).Counts("from-a-file")
}

func TestDeclaredByAText(t *testing.T) {
	t.Parallel()
	text := `{"UserConfig": {"Namespaces": [{"Name": "n", "Queues": [{"Name": "written-here"}]}]}}`
	servicebustest.New(t, servicebustest.JSON(text)).Counts("written-here")
}

func TestDeclaredByTheFileOfThePackage(t *testing.T) {
	t.Chdir("testdata/package")
	servicebustest.New(t).Counts("of-the-package")
}

func TestMessage(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t, servicebustest.Queue("orders"))
	send(t, bus, "orders", azservicebus.Message{})
	if bus.Counts("orders")["active"] != 1 {
		t.Error(bus.Counts("orders"))
	}
	if err := complete(t, bus, "orders"); err != nil {
		t.Error(err)
	}
	bus.WaitIdle()
	if !bus.IsIdle() {
		t.Error("the namespace is not idle")
	}
	kinds := bus.Timeline("orders", "o-17").Kinds()
	if !slices.Equal(kinds, []string{"sent", "delivered", "completed"}) {
		t.Error(kinds)
	}
	bus.Reset()
	if timeline := bus.Timeline("", "").String(); timeline != "  nothing happened" {
		t.Error(timeline)
	}
}

func TestMessageOverTLS(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	client := client(t, bus.TLSConnectionString(), azservicebus.ClientOptions{TLSConfig: bus.TLSConfig()})
	sendBy(t, client, "queue.1", azservicebus.Message{})
	if bus.Counts("queue.1")["active"] != 1 {
		t.Error(bus.Counts("queue.1"))
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	bus.Freeze()
	began := bus.Now()
	hour := time.Hour
	send(t, bus, "queue.1", azservicebus.Message{TimeToLive: &hour})
	bus.Advance(hour + 500*time.Millisecond)
	if elapsed := bus.Now().Sub(began); elapsed != hour+500*time.Millisecond {
		t.Error(elapsed)
	}
	if bus.Counts("queue.1")["active"] != 0 {
		t.Error(bus.Counts("queue.1"))
	}
	bus.Resume()
	bus.StepByItself()
	var held map[string]int
	bus.HoldClock(func() {
		due := bus.Now().Add(hour)
		send(t, bus, "queue.1", azservicebus.Message{ScheduledEnqueueTime: &due})
		held = bus.Counts("queue.1")
	})
	if held["scheduled"] != 1 {
		t.Error(held)
	}
	bus.Expect("queue.1", "message_count", servicebustest.Fields{"active": 1})
}

func TestAWorkerBesideTheTest(t *testing.T) {
	t.Parallel()
	bus := servicebustest.New(t)
	worker := make(chan error, 1)
	go func() { worker <- complete(t, bus, "queue.1") }()
	bus.WaitForReceiver("queue.1")
	send(t, bus, "queue.1", azservicebus.Message{})
	bus.WaitIdle()
	if err := <-worker; err != nil {
		t.Error(err)
	}
}

func TestOptionsAreThoseOfTheEmulator(t *testing.T) {
	t.Parallel()
	premium := servicebustest.New(t, servicebustest.EmulatorOptions("--tier", "premium"))
	if premium.Name != "test-1" {
		t.Error("the namespace is not in a separate emulator: ", premium.Name)
	}
}
