package coordinator

// Done returns a channel that is closed when Shutdown begins: from then on no call
// goes any more. It is for who looks on, as a status page does.
func (c *Coordinator) Done() <-chan struct{} { return c.stopped }
