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

// requestTimeout is longer than an assertion may wait, which is ten minutes.
const requestTimeout = 11 * time.Minute

// control is the control API of an emulator; whyItEnded explains why an emulator does not respond.
type control struct {
	address    string
	client     http.Client
	whyItEnded func() string
}

// ask sends a request and decodes the response into answer; query is a list of alternating names and values. A body is either
// JSON or a value to be encoded as JSON.
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
		var failed struct{ Error struct{ Text string } }
		_ = json.Unmarshal(text, &failed)
		return errors.New(cmp.Or(failed.Error.Text, fmt.Sprintf("the emulator responded with %s: %s", response.Status, text)))
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
