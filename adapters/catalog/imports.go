package catalog

// The adapters that are written by hand; each registers itself, and its package
// comment says what data cannot say.
import (
	_ "github.com/headgate/headgate/adapters/rdap"  // its bootstrap is a redirect to another host
	_ "github.com/headgate/headgate/adapters/whois" // TCP port 43
)
