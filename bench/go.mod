module github.com/headgate/headgate/bench

go 1.26.0

require (
	github.com/headgate/headgate v0.0.0
	github.com/sony/gobreaker/v2 v2.4.0
	golang.org/x/sync v0.25.0
	golang.org/x/time v0.16.0
)

require (
	github.com/cenkalti/backoff/v4 v4.3.0 // indirect
	github.com/goccy/go-yaml v1.19.2 // indirect
	github.com/theory/jsonpath v0.12.3 // indirect
)

replace github.com/headgate/headgate => ../
