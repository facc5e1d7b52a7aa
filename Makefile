# Every target runs over all modules of go.work. Nothing but Go, git, make and the
# Go module proxy is needed; setup installs what is missing.

GO       ?= go
FUZZTIME ?= 60s
MODULES  := $(or $(shell $(GO) list -m -f '{{.Dir}}'),$(error no module found: is Go installed?))

# The tools are pinned here and built into ./bin, so that everybody checks with
# the same ones and none of them enters a go.mod.
STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOLANGCILINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK  := golang.org/x/vuln/cmd/govulncheck@v1.9.0

# each runs a command in every module, in all of them also where one fails.
define each
@fail=0; for dir in $(MODULES); do echo "# $@: .$${dir#$(CURDIR)}"; (cd "$$dir" && $(1)) || fail=1; done; exit $$fail
endef

.PHONY: all check test test-race test-whole setup bench soak mutants fuzz fmt vet staticcheck lint tidy vuln shortfuzz

all: check test

# check says everything that can be said without running a test but the fuzz
# targets, each for a few seconds.
check: fmt vet staticcheck lint tidy vuln shortfuzz

# Some tests play an hour of traffic, storms of calls, or a whole catalogue; under the
# race detector, which makes them ten times as slow, they play less of it. So they run
# once more without it, as do the tests that count allocations.
# Both runs are made, also where the first fails.
test: setup
	@$(MAKE) --no-print-directory --keep-going test-race test-whole

test-race:
	$(call each,$(GO) test -race -shuffle=on -timeout 10m ./...)

test-whole:
	@fail=0; run() { echo "# $@: $$1 -run '$$2'"; (cd "$$1" && $(GO) test -timeout 10m -run "$$2" ./...) || fail=1; }; \
	run . 'Hour|Alloc|Storm|Played'; run console/browsertest 'Thousand|Second'; run ledger/sqlite Conformance; exit $$fail

# setup brings what the tests need besides Go, where it is missing: a C compiler, for
# the race detector, Prometheus's promtool, for the alerts, Chromium and a typeface, for
# the status page, and Redis (with Sentinel), which tests start by themselves. A test
# that needs another program gets its line here.
setup:
	@$(call need,gcc,gcc libc6-dev,gcc glibc-devel,gcc musl-dev)
	@$(call need,promtool,prometheus,golang-github-prometheus,prometheus)
	@[ -n "$$CHROME" ] || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		$(call need,chromium,chromium fonts-inter,chromium rsms-inter-fonts,chromium font-inter)
	@$(call need,redis-server,redis-server,redis,redis)

# need installs packages (Debian's, Fedora's, Alpine's names) unless a command is there.
define need
command -v $(1) >/dev/null || { echo "# setup: installing $(1)"; \
	if command -v apt-get >/dev/null; then apt-get update -q && apt-get install -qy --no-install-recommends $(2); \
	elif command -v dnf >/dev/null; then dnf install -qy $(3); \
	elif command -v apk >/dev/null; then apk add -q $(4); \
	else echo "install $(1) by your system's package manager, then run this again" >&2; exit 1; fi; }
endef

# bench plays Headgate side by side with what would be taken instead, and writes what it
# has measured; a few minutes on 2 cores that do nothing else. The benchmarks of a single
# package: go test -bench . -benchmem.
bench:
	$(GO) run ./bench -o docs/benchmarks.md

fmt:
	@files=$$(gofmt -l .); [ -z "$$files" ] || { printf 'not gofmt-ed:\n%s\n' "$$files"; exit 1; }

vet:
	$(call each,$(GO) vet ./...)

# A tool's file carries its version: a new pin builds a new one.
tool = bin/$(notdir $(1))
define build
GOBIN='$(CURDIR)/bin' $(GO) install $(1) && mv 'bin/$(notdir $(firstword $(subst @, ,$(1))))' '$@'
endef

$(call tool,$(STATICCHECK)):
	$(call build,$(STATICCHECK))
$(call tool,$(GOLANGCILINT)):
	$(call build,$(GOLANGCILINT))
$(call tool,$(GOVULNCHECK)):
	$(call build,$(GOVULNCHECK))

staticcheck: $(call tool,$(STATICCHECK))
	$(call each,'$(CURDIR)/$<' ./...)

lint: $(call tool,$(GOLANGCILINT))
	$(call each,'$(CURDIR)/$<' run --config '$(CURDIR)/.golangci.yml' ./...)

tidy:
	$(call each,$(GO) mod tidy -diff)

# Where the database cannot be reached nothing was checked, and that is what is said.
unreachable = fetching vulnerabilities
vuln: $(call tool,$(GOVULNCHECK))
	$(call each,out=$$('$(CURDIR)/$<' ./... 2>&1) || { echo "$$out" | grep -q '$(unreachable)' || { echo "$$out"; exit 1; }; \
		out='skipped: govulncheck cannot reach its database; nothing was checked'; }; echo "$$out")


# The short run is so many inputs, not so many seconds: before Go 1.27 a run that
# ends by the clock may fail with "context deadline exceeded" and no input
# (go.dev/issue/75804), which says nothing of the code.
fuzz: FUZZ = $(FUZZTIME)
shortfuzz: FUZZ = 10000x
fuzz shortfuzz:
	@targets=$$(grep -roE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort); \
	[ -n "$$targets" ] || { echo 'no fuzz target found'; exit 1; }; \
	echo "$$targets" | while IFS=: read -r file func; do \
		echo "# $@: $${func#func } of $$(dirname "$$file")"; \
		$(GO) test -run '^$$' -fuzz "^$${func#func }\$$" -fuzztime $(FUZZ) "$$(dirname "$$file")" || exit 1; \
	done
# Worlds of everything at once, and the same mood over real sockets. A failure names the
# seed and the command that plays it again.
SOAKTIME ?= 10m
SOAKSEED ?= $(shell date +%s)
soak: setup
	$(GO) test -race -c -o bin/soak.test ./internal/soak
	cd internal/soak && '$(CURDIR)/bin/soak.test' -test.timeout 0 -soak.for=$(SOAKTIME) -soak.seed=$(SOAKSEED)

# Faults are put into the core, one at a time; a test must catch each. Takes half an hour.
mutants:
	$(GO) test -timeout 0 -v -run TestEveryMutantIsCaught ./internal/mutants -mutants.run
