package servicebustest

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"time"
)

// Fields have the names and values of the control API or of a configuration file. Durations are encoded in seconds, and bytes
// are decoded as UTF-8.
type Fields map[string]any

// An Option declares entities and settings of a namespace, or options of its emulator.
type Option func(*settings)

type settings struct {
	queues, topics []Fields
	namespace      Fields
	file           []byte
	err            error
	options        []string
}

// Queue declares a queue, with properties by their names in the configuration file:
// Queue("orders", Fields{"MaxDeliveryCount": 3, "LockDuration": 30 * time.Second}).
func Queue(name string, properties ...Fields) Option {
	declared := Fields{"name": name}.with(properties...)
	return func(settings *settings) { settings.queues = append(settings.queues, declared) }
}

// Topic declares a topic with its subscriptions, each from [Subscription].
func Topic(name string, subscriptions ...Fields) Option {
	declared := Fields{"name": name, "subscriptions": subscriptions}
	return func(settings *settings) { settings.topics = append(settings.topics, declared) }
}

// Subscription is a subscription of a topic; without [SQL] or [Correlation] it receives every message.
func Subscription(name string, properties Fields, rules ...Fields) Fields {
	return Fields{"name": name, "rules": rules}.with(properties)
}

// SQL is a rule: SQL("high", "price > 10").
func SQL(name, expression string) Fields {
	return Fields{"name": name, "sql": expression}
}

// Correlation is a rule: Correlation("orders", Fields{"Label": "order"}).
func Correlation(name string, filter Fields) Fields {
	return Fields{"name": name, "correlation": filter}
}

// Settings are the block Emulator of the namespace: Settings(Fields{"Tier": "premium"}).
func Settings(block Fields) Option {
	return func(settings *settings) { settings.namespace = block }
}

// File declares the topology in a configuration file; its path is relative to the package of the test.
func File(path string) Option {
	return func(settings *settings) { settings.file, settings.err = os.ReadFile(path) }
}

// JSON declares the topology in the text of a configuration file.
func JSON(text string) Option {
	return func(settings *settings) { settings.file = []byte(text) }
}

// EmulatorOptions are command-line options of the emulator; tests with the same options share an emulator.
func EmulatorOptions(options ...string) Option {
	return func(settings *settings) { settings.options = options }
}

// configuration is the declared topology, else testdata/topology.json, else one queue, queue.1.
func (settings *settings) configuration() (any, error) {
	entities := len(settings.queues) + len(settings.topics)
	if settings.file != nil && entities+len(settings.namespace) > 0 {
		return nil, errors.New("File and JSON declare the whole topology: pass no Queue, Topic or Settings beside them")
	}
	if settings.file != nil || settings.err != nil {
		return settings.file, settings.err
	}
	if entities == 0 {
		if settings.namespace == nil {
			file, _ := os.ReadFile("testdata/topology.json")
			return file, nil
		}
		Queue("queue.1")(settings)
	}
	return Fields{"queues": settings.queues, "topics": settings.topics, "settings": settings.namespace}, nil
}

// with adds further fields.
func (fields Fields) with(more ...Fields) Fields {
	for _, some := range more {
		maps.Copy(fields, some)
	}
	return fields
}

// MarshalJSON encodes durations in seconds, and bytes as the control API does.
func (fields Fields) MarshalJSON() ([]byte, error) {
	members := map[string]any{}
	for field, value := range fields {
		members[field] = plain(value)
	}
	return json.Marshal(members)
}

func plain(value any) any {
	switch value := value.(type) {
	case time.Duration:
		return value.Seconds()
	case []byte:
		return map[string]any{"$bytes": value}
	case [][]byte:
		return each(value, func(bytes []byte) any { return plain(bytes) })
	case map[string]any:
		return Fields(value)
	case []any:
		return each(value, plain)
	}
	return value
}

func each[From, To any](values []From, convert func(From) To) []To {
	all := make([]To, len(values))
	for i, value := range values {
		all[i] = convert(value)
	}
	return all
}
