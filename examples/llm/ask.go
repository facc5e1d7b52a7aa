package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// asker asks the model through a coordinator: the transport of its client finds the
// lease that each call runs under.
type asker struct {
	c      *coordinator.Coordinator
	client *http.Client
	url    string
}

// estimate is what a question may use, before anybody knows.
func estimate(q question) int64 { return int64(len(q.Messages[0].Content)/4 + q.MaxTokens) }

// usage is what an answer used.
type usage struct {
	Total int64 `json:"total_tokens"`
}

// ask returns what an answer used. An error is a *coordinator.Error.
func (a *asker) ask(ctx context.Context, user string, priority coordinator.Priority, q question) (used usage, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return used, err
	}
	call := coordinator.Call{
		Provider: slug, Endpoint: "chat", Flow: user, Priority: priority,
		Cost: map[string]int64{provider.Tokens: estimate(q)},
	}
	err = a.c.Do(ctx, call, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/chat/completions", bytes.NewReader(body))
		if err != nil {
			return err
		}
		res, err := a.client.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", res.StatusCode) // the transport has reported what it means
		}
		// The header tells what the prompt was: a better estimate while the answer is
		// still being written.
		if prompt, err := strconv.ParseInt(res.Header.Get("X-Prompt-Tokens"), 10, 64); err == nil {
			lease, _ := coordinator.LeaseFrom(ctx)
			lease.Report(provider.Feedback{Used: map[string]int64{provider.Tokens: prompt + int64(q.MaxTokens)}})
		}
		// The end of the stream tells what the whole was. The transport reads it, too,
		// as the declaration says, and reports it.
		used, err = read(res)
		return err
	})
	return used, err
}

// read reads a stream of events to its end and returns what it used.
func read(res *http.Response) (used usage, err error) {
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok:
			continue
		case data == "[DONE]":
			return used, nil
		}
		var event struct{ Usage *usage } // a demo: nobody reads the text
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return used, fmt.Errorf("an event is no JSON: %w", err)
		}
		if event.Usage != nil {
			used = *event.Usage
		}
	}
	return used, errors.Join(errors.New("the stream ended before it was done"), lines.Err())
}
