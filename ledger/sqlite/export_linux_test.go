package sqlite

// KnowsNetwork tells whether there is a magic number for such a file system.
func KnowsNetwork(kind string) bool {
	for _, k := range networks {
		if k == kind {
			return true
		}
	}
	return false
}
