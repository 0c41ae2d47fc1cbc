package servicebustest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// longest is how long a request may take, which may move a clock by years.
const longest = 10 * time.Minute

// control is the control API of an emulator; whyItEnded tells what became of one that does not answer.
type control struct {
	address    string
	client     http.Client
	whyItEnded func() string
}

// refusal is an answer that refuses, as a sentence with every problem of a topology.
type refusal struct {
	Failed struct {
		Message  string
		Problems []struct {
			Path, Allowed string
			Value         any
		}
	} `json:"error"`
	status int
	text   string
}

func (refused *refusal) Error() string {
	if refused.Failed.Message == "" {
		return fmt.Sprintf("the emulator answered %d: %s", refused.status, refused.text)
	}
	var problems []string
	for _, problem := range refused.Failed.Problems {
		problems = append(problems, fmt.Sprintf("%s %v: %s", problem.Path, problem.Value, problem.Allowed))
	}
	if problems == nil {
		return refused.Failed.Message
	}
	return refused.Failed.Message + ": " + strings.Join(problems, "; ")
}

// ask asks, and decodes the answer into what answer points to; query has names and values in turn.
func (control *control) ask(method, path string, body, answer any, query ...string) error {
	var encoded []byte
	switch body := body.(type) {
	case nil:
	case []byte:
		encoded = body
	default:
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			var refused *json.MarshalerError
			if errors.As(err, &refused) {
				return refused.Err
			}
			return err
		}
	}
	parameters := url.Values{}
	for i := 0; i < len(query); i += 2 {
		if query[i+1] != "" {
			parameters.Set(query[i], query[i+1])
		}
	}
	target := "http://" + control.address + "/$emulator/v1/" + path + "?" + parameters.Encode()
	request, err := http.NewRequest(method, strings.TrimSuffix(target, "?"), bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := control.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s (%w)", control.whyItEnded(), err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s (%w)", control.whyItEnded(), err)
	}
	if response.StatusCode >= 400 {
		refused := &refusal{status: response.StatusCode, text: string(text)}
		_ = json.Unmarshal(text, refused) // An answer without an error is told as it is.
		return refused
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
