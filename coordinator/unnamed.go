package coordinator

// unnamed are the limits of scope key of calls that name no key: those count together,
// as if they had one. They are left out where calls name keys and none is without.
func (l *lane) unnamed(keyed bool) (limits []LimitState) {
	pt := l.parts[partKey{}]
	if pt == nil {
		return nil
	}
	for _, g := range pt.limits {
		if g != nil {
			if s := g.state(); !keyed || s.Used+s.Held > 0 {
				limits = append(limits, *s)
			}
		}
	}
	return limits
}
