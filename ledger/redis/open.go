package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Options are what a URL cannot say. The zero value means the defaults.
type Options struct {
	// Prefix begins all keys, inside their hash tag, so that several fleets can share a
	// server. It replaces the URL's prefix; default "headgate". Letters, digits and ._-:
	// are allowed.
	Prefix string
	// TLS is for servers whose certificate needs more than the system's roots, or that want
	// one of ours. It has TLS used also where the URL says redis://.
	TLS *tls.Config
	// Password replaces the URL's, so that it need not be in there; Username likewise.
	Username, Password string
	// DialTimeout bounds each attempt to connect. Default 1 s.
	DialTimeout time.Duration
}

var prefixes = regexp.MustCompile(`^[A-Za-z0-9._:-]{1,64}$`)

// parameters are those that a URL may have.
var parameters = []string{"addr", "db", "master_set", "prefix", "skip_verify", "protocol"}

// Open makes a Store of a URL:
//
//	redis://user:password@host:6379/0        one server; a Cluster where it is one
//	rediss://…                               by TLS
//	unix:///run/redis.sock?db=0              by a socket
//	redis://host:26379?addr=host2:26379&master_set=main   by Sentinel
//	redis://host:7000?addr=host2:7000        a Cluster, by several of its servers
//
// Parameters besides: prefix=NAME (see Options), skip_verify=true (TLS without checking
// the certificate: for tests), protocol=2 (servers and proxies that do not know RESP3).
//
// A server that cannot be reached is no error: the Store connects when it can, and until
// then its exchanges fail. An answer that says that something is wrong is one: the user,
// the password or the database, a version before 6.2, a replica, a user who may not do
// what is needed, keys of another kind under our names, or a newer schema of ours. ctx
// bounds the attempt. Errors hold no secret.
func Open(ctx context.Context, rawURL string, o Options) (*Store, error) {
	option, prefix, err := parse(rawURL, o)
	if err != nil {
		return nil, err
	}
	s := &Store{option: option, prefix: prefix, places: map[string]*place{}, holders: map[string]*holder{}}
	if _, err := s.connected(ctx); err != nil && definite(err) {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func parse(rawURL string, o Options) (option rueidis.ClientOption, prefix string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil { // its text has the URL in it, and so perhaps a password
		return option, "", errors.New("redis: this is no URL: write redis://user:password@host:6379/0, with what is no letter or digit as %XX")
	}
	schemes := []string{"redis", "rediss", "valkey", "valkeys", "unix"}
	if !slices.Contains(schemes, u.Scheme) {
		return option, "", fmt.Errorf("redis: the URL begins with %q: it has to be one of %s", u.Scheme, strings.Join(schemes, ", "))
	}
	for k := range u.Query() {
		if !slices.Contains(parameters, k) {
			return option, "", fmt.Errorf("redis: parameter %q of the URL: there are only %s", k, strings.Join(parameters, ", "))
		}
	}
	if option, err = rueidis.ParseURL(rawURL); err != nil {
		return option, "", errors.New("redis: the URL's path has to be the number of a database, and its parameters what Open says")
	}
	if u.Scheme == "unix" && u.Path == "" || option.SelectDB < 0 {
		return option, "", errors.New("redis: the URL has no socket's path, or a database below 0")
	}
	prefix = "headgate"
	for _, p := range []string{u.Query().Get("prefix"), o.Prefix} {
		if p != "" {
			prefix = p
		}
	}
	if !prefixes.MatchString(prefix) {
		return option, "", fmt.Errorf("redis: prefix %q: up to 64 letters, digits and ._:- are allowed", prefix)
	}
	return o.fill(option, u), prefix, nil
}

// fill sets what a ledger needs.
func (o Options) fill(option rueidis.ClientOption, u *url.URL) rueidis.ClientOption {
	if o.TLS != nil {
		option.TLSConfig = o.TLS.Clone()
		if option.TLSConfig.ServerName == "" {
			option.TLSConfig.ServerName = u.Hostname()
		}
	}
	if o.Username != "" {
		option.Username = o.Username
	}
	if o.Password != "" {
		option.Password = o.Password
	}
	option.Dialer.Timeout = time.Second
	if o.DialTimeout > 0 {
		option.Dialer.Timeout = o.DialTimeout
	}
	if option.Sentinel.MasterSet != "" {
		option.Sentinel.Dialer.Timeout = option.Dialer.Timeout
		option.Sentinel.TLSConfig = option.TLSConfig
		option.Sentinel.TopologyRefreshInterval = 5 * time.Second
	}
	option.DisableCache = true    // nothing of ours may be answered from memory
	option.DisableRetry = true    // nor said twice: an exchange says by itself what may be
	option.PipelineMultiplex = -1 // one connection: an exchange follows on the one before
	option.ConnWriteTimeout = 5 * time.Second
	option.ClientName = "headgate"
	option.ReadBufferEachConn, option.WriteBufferEachConn = 1<<16, 1<<16
	return option
}
