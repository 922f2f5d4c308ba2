# `make` lists the targets.

GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   = golang.org/x/vuln/cmd/govulncheck@v1.9.0
FUZZTIME     ?= 10s
TESTFLAGS    ?=

.DEFAULT_GOAL = help
.PHONY: help build test bench fuzz lint redis-server

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the programs into bin/
	go build -o bin/ ./cmd/...

# One package at a time: tests that measure a pace in milliseconds do not share
# the processor with those of another package.
test: redis-server ## run all tests, with the race detector where there is a C compiler
	@race=-race; \
	if ! sh scripts/can-race.sh; then \
		echo 'make test: no working C compiler, which the race detector needs: running without it.' >&2; race=; \
	fi; \
	set -x; go test $$race -p 1 -timeout 15m $(TESTFLAGS) ./... && cd bench && go test $(TESTFLAGS) ./...

redis-server:
	@sh scripts/install-redis.sh

bench: redis-server ## run the benchmarks, and limiters beside their peers
	go test -run '^$$' -bench . -benchmem $(TESTFLAGS) ./...
	cd bench && go run ./limiters

fuzz: ## run each fuzz target for FUZZTIME (10s)
	@for package in $$(go list ./...); do \
		listed=$$(go test -list '^Fuzz' $$package) || { echo "$$listed"; exit 1; }; \
		for target in $$(echo "$$listed" | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$package || exit 1; \
		done; \
	done

lint: ## check format, code, go.mod and known vulnerabilities
	@unformatted=$$(gofmt -l .); if [ "$$unformatted" ]; then echo "Not formatted, run gofmt -w:" >&2; echo "$$unformatted" >&2; exit 1; fi
	go mod tidy -diff && cd bench && go mod tidy -diff
	go vet ./... && cd bench && go vet ./...
	go run $(GOLANGCI_LINT) run ./...
	@output=$$(go run $(GOVULNCHECK) ./... 2>&1) && status=0 || status=$$?; echo "$$output"; \
	case "$$output" in \
		*'fetching vulnerabilities:'*) echo 'make lint: not checked for known vulnerabilities: their database cannot be reached.' >&2 ;; \
		*) exit $$status ;; \
	esac
