package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// The plan: what the provider grants. The tokens' bucket holds
// so many minutes' worth; requests are counted in any minute.
const (
	slug              = "llm"
	requestsPerMinute = 120
	tokensPerMinute   = 60_000
	bucket            = 0.5
)

// declared is the provider as we declare it, with a share of the tokens kept back: a
// call whose estimate was too low uses more than was asked for.
func declared(reserve float64) provider.Provider {
	tokens := int64((1 - reserve) * tokensPerMinute)
	return provider.Provider{
		Slug: slug,
		Throttle: provider.Throttle{
			// A request counts as it arrives, and the model thinks for longer than that
			// before it says a word: without this a request would hold its unit for so
			// long. Its tokens wait for the answer.
			ArrivalWithin: 2 * time.Second,
			Limits: []provider.Limit{
				{Name: "requests", Max: requestsPerMinute, Per: "1m"},
				{Name: "tokens", Max: tokens, Per: "1m", Algorithm: provider.TokenBucket, Burst: int64(bucket * float64(tokens)), Unit: provider.Tokens},
			},
		},
		Endpoints: []provider.Endpoint{{Name: "chat", Method: http.MethodPost, Path: "/chat/completions"}},
		Dialect: provider.Dialect{
			// The last event of the stream tells what was used: read as it passes.
			Used: map[string]provider.Source{provider.Tokens: {Body: true, Pattern: `"total_tokens":\s*(\d+)`}},
		},
	}
}

// question is the request, as most providers take it.
type question struct {
	Messages  []message `json:"messages"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// model plays the provider: it streams answers, and the referee judges each request
// by what it really uses, at the instant at which it arrives.
type model struct {
	judge   *referee.Referee
	network stage.Network
	speed   float64
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || len(q.Messages) != 1 {
		http.Error(w, `{"error":"want one message"}`, http.StatusBadRequest)
		return
	}
	if !m.network.Pass(r.Context()) {
		return
	}
	prompt, output := use(q)
	leave, ok := m.judge.Enter(slug, "chat", "", map[string]int64{provider.Tokens: int64(prompt + output)})
	if !ok {
		m.network.Pass(r.Context())
		leave(provider.RateLimited)
		http.Error(w, `{"error":"rate limit"}`, http.StatusTooManyRequests)
		return
	}
	defer leave(provider.OK)
	m.stream(w, r, prompt, output)
}

// stream thinks, and then writes a word now and then. A token takes 40 ms.
func (m *model) stream(w http.ResponseWriter, r *http.Request, prompt, output int) {
	if !stage.Sleep(r.Context(), stage.Shorten(4*time.Second+2*time.Millisecond*time.Duration(prompt), m.speed)) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Prompt-Tokens", strconv.Itoa(prompt))
	out := http.NewResponseController(w)
	const words = 5
	for range words {
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"simulated \"}}]}\n\n")
		if out.Flush() != nil || !stage.Sleep(r.Context(), stage.Shorten(40*time.Millisecond*time.Duration(output)/words, m.speed)) {
			return
		}
	}
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,\"total_tokens\":%d}}\n\ndata: [DONE]\n\n",
		prompt, output, prompt+output)
}

// use is what a question really uses: a prompt is 0.8 to 1.3 times the usual four
// characters a token, an answer a tenth to the whole of what it may be.
func use(q question) (prompt, output int) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.Messages[0].Content)) // a hash takes everything
	sum := h.Sum64()
	prompt = max(1, len(q.Messages[0].Content)*int(80+sum%51)/400)
	output = max(1, q.MaxTokens*int(10+sum>>32%91)/100)
	return prompt, output
}
