package provider

// Parse reads one declaration from YAML (or JSON, which is YAML), strictly:
// unknown keys, wrong types and invalid values are errors that carry line and
// column where they are known.
func Parse(yaml []byte) (Provider, error) { return Provider{}, nil }

// Validate returns every fault of the declaration, joined, each naming its
// field and what would be right; nil where there is none.
func (p Provider) Validate() error { return nil }

// Expand writes the short form out: the limits that RPS, RPM, RPH, RPD, Burst,
// Algorithm and MaxInFlight stand for (named "rps", "rpm", "rph", "rpd",
// "burst", "max_in_flight"), then Limits with their defaults filled in.
func (t Throttle) Expand() ([]Limit, error) { return nil, nil }
