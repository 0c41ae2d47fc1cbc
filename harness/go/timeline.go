package servicebustest

import (
	"fmt"
	"strings"
)

// shown is how many events a text has at most.
const shown = 200

// Timeline is what happened, oldest first; as text it has a line for each event.
type Timeline []Event

// Event is something that happened, as the control API tells it.
type Event struct {
	At             string
	Offset         float64
	Kind           string
	Entity         string
	SequenceNumber int64  `json:"sequence_number"`
	MessageID      string `json:"message_id"`
	Client         string
	DeliveryCount  int    `json:"delivery_count"`
	LockedUntil    string `json:"locked_until"`
	Reason         string
	Detail         string
	Session        string
	Line           string
}

// Kinds are the kinds of the events: sent, delivered, completed.
func (timeline Timeline) Kinds() []string {
	var kinds []string
	for _, event := range timeline {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

func (timeline Timeline) String() string {
	var lines []string
	older := max(0, len(timeline)-shown)
	if older > 0 {
		lines = append(lines, fmt.Sprintf("  … %d older events", older))
	}
	for _, event := range timeline[older:] {
		lines = append(lines, event.String())
	}
	if lines == nil {
		return "  nothing happened"
	}
	return strings.Join(lines, "\n")
}

// String tells when, what, to which message, by which client, and where.
func (event Event) String() string {
	return event.Line
}
