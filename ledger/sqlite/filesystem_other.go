//go:build !linux

package sqlite

// networkFS cannot tell here.
func networkFS(string) string { return "" }

// full cannot tell here either.
func full(string) bool { return false }
