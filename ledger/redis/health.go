package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// often is how often the servers are asked how they are.
const often = 30 * time.Second

// health is what a person should know of the servers.
type health struct {
	asked   time.Time
	lasting string    // as of asked
	passing string    // what was found by an exchange
	since   time.Time // of passing
}

// warn is Reply.Warning: how the servers are configured, as they said last, and for a
// minute what exchanges have come across. The servers are asked beside the exchanges,
// which do not wait for it.
func (s *Store) warn(client rueidis.Client, found []string) string {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.health.asked) >= often && !s.closed {
		s.health.asked = now
		s.beside.Go(func() { s.examine(client) })
	}
	if len(found) > 0 {
		s.health.passing, s.health.since = strings.Join(slices.Compact(found), "; "), now
	}
	if now.Sub(s.health.since) > time.Minute {
		s.health.passing = ""
	}
	return strings.Trim(s.health.lasting+"; "+s.health.passing, "; ")
}

func (s *Store) examine(client rueidis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	lasting := diagnose(ctx, client)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health.lasting = lasting
}

// diagnose asks every server. One that may not be asked is not spoken of.
func diagnose(ctx context.Context, client rueidis.Client) string {
	var all []string
	for _, node := range client.Nodes() {
		text, err := node.Do(ctx, node.B().Info().Build()).ToString()
		if err != nil {
			continue
		}
		info := parseInfo(text)
		if info["role"] != "master" {
			continue
		}
		if policy := info["maxmemory_policy"]; info["maxmemory"] != "0" && policy != "" && policy != "noeviction" {
			all = append(all, fmt.Sprintf("the server drops keys when its memory is full (maxmemory-policy %s), and with them what was spent: set noeviction", policy))
		}
		if n, _ := strconv.ParseInt(info["evicted_keys"], 10, 64); n > 0 {
			all = append(all, fmt.Sprintf("the server has dropped %d keys for want of memory", n))
		}
		if info["aof_enabled"] == "0" && !snapshots(ctx, node) {
			all = append(all, "the server keeps nothing on disk: a restart forgets what was spent")
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "; ")
}

// snapshots tells whether the server saves itself, or may not be asked.
func snapshots(ctx context.Context, node rueidis.Client) bool {
	config, err := node.Do(ctx, node.B().ConfigGet().Parameter("save").Build()).AsStrMap()
	return err != nil || config["save"] != ""
}

func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[k] = v
		}
	}
	return info
}
