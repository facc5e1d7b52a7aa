package whois

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
)

// maxAnswer bounds what is read of an answer: a record has a few KiB.
const maxAnswer = 256 << 10

var (
	errTooLong = errors.New("the answer is longer than 256 KiB")
)

// ask sends one line and reads the answer to its end. Nothing of an attempt that
// fails is kept: a record that was cut short looks like one that is whole.
func (a *Adapter) ask(ctx context.Context, server, line string) (string, error) {
	conn, err := a.dial(ctx, "tcp", net.JoinHostPort(server, "43"))
	if err != nil {
		return "", broken(ctx, server, err, provider.Feedback{}) // no query was sent
	}
	defer conn.Close()
	// The context may end while a read waits: closing is what wakes it.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, line+"\r\n"); err != nil {
		return "", broken(ctx, server, err, provider.Feedback{Unanswered: true})
	}
	text, err := io.ReadAll(io.LimitReader(conn, maxAnswer+1))
	switch {
	case err != nil:
		return "", broken(ctx, server, err, provider.Feedback{Unanswered: len(text) == 0})
	case len(text) > maxAnswer:
		f := provider.Feedback{Outcome: provider.Rejected, Detail: errTooLong.Error()}
		return "", fmt.Errorf("whois: %s: %w", server, f.Err(errTooLong))
	}
	return string(text), nil
}

// broken says why there is no whole answer.
func broken(ctx context.Context, server string, err error, f provider.Feedback) error {
	return fmt.Errorf("whois: %s: %w", server, reach.Broken(ctx, err, err, f))
}
