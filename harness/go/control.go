package servicebustest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// longest is how long a request may take: an assertion may wait for ten minutes.
const longest = 11 * time.Minute

// control is the control API of an emulator; whyItEnded tells what became of one that does not answer.
type control struct {
	address    string
	client     http.Client
	whyItEnded func() string
}

// ask asks, and decodes the answer into what answer points to; query has names and values in turn. A body is JSON as it is, or
// what is made JSON.
func (control *control) ask(method, path string, body, answer any, query ...string) error {
	encoded, isEncoded := body.([]byte)
	if body != nil && !isEncoded {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	parameters := url.Values{}
	for i := 0; i < len(query); i += 2 {
		if query[i+1] != "" {
			parameters.Set(query[i], query[i+1])
		}
	}
	target := url.URL{Scheme: "http", Host: control.address, Path: "/$emulator/v1/" + path, RawQuery: parameters.Encode()}
	request, err := http.NewRequest(method, target.String(), bytes.NewReader(encoded))
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
		var refused struct{ Error struct{ Text string } }
		_ = json.Unmarshal(text, &refused)
		return errors.New(cmp.Or(refused.Error.Text, fmt.Sprintf("the emulator answered %s: %s", response.Status, text)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
