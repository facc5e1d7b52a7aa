package transport

// Claimed counts the leases that are remembered.
func Claimed() (n int) {
	claimed.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}
