package coordinator

// Limits are the limits that the call counts in, as they stand now, in the order of
// their declaration: for who tells his own clients what is left for them.
func (ls *Lease) Limits() []LimitState {
	l := ls.l
	l.lock()
	all := make([]LimitState, 0, len(ls.route.limits))
	for i, g := range ls.route.limits {
		if ls.wait.Cost[ls.route.skip+i] > 0 {
			all = append(all, *g.state())
		}
	}
	l.tell(l.unlock())
	return all
}
