# make run    build what is missing, analyze a program of this machine and
#             explain one address of it
# make test   every test, or those that PKGS and TESTFLAGS choose; at the end, what
#             was not judged on this machine, and why
# make build  bin/xol
# make install PREFIX=/usr/local DESTDIR=  the program, its pages for man, completions
# make dist   dist/: archives for every platform, without the engine
# make deb    dist/: a Debian package, without the engine
# make try    install, dist and deb in a folder of their own: does what comes of it work?
# make pages  the pages of docs/ that are made from the code
# make site   dist/site: docs/ as a static site
# make lint   gofmt, go vet, staticcheck, words that are not plain English
# make cover  which share of the statements the tests of each package run; COVER asks
#             for more than that
# make vuln   known vulnerabilities in what xol is built of, by the database of Go or that
#             of VULNDB, an address; fails where neither can be reached
# make race   every test under the race detector (needs a C compiler)
# make fuzz   every fuzz target for FUZZTIME each
# make surface which exported names of PKGS no other package reads
# make damage 10,000 damaged files through every command that reads files
# make soak   probes everywhere, with SEEDS schedules for each program and mode;
#             patch plans with CPUs at every instruction of detour buffers;
#             SEQUENCES random sequences of 100 calls of the runtime for each ISA
# make mutate every fault of scripts/mutate/faults.txt: does a test notice it?
# make vm     in emulated machines with the kernels of VM_SUITES (Debian's), whether
#             kprobe_events says of a few hundred probes what xol check and explain say, of the
#             kernel's file and of the kernel that runs
# make newest every test with the newest engine that Debian has
# make screenshots  the pictures in docs/screenshots, of reports on KERNEL and OTHER_KERNEL, and
#             in .cache/pages/site, of the site, to be looked at (needs chromium)
# make page-library  the library that lays out the report's map, by npm
# make bench  every benchmark
# make peers  xol beside other decoders, disassemblers and probes, in ROUNDS rounds: writes
#             BENCHMARKS.md and its plots (scripts/peers says what is used where it is there)
# make speed  the default analysis of KERNEL, against objdump and on two CPUs against one

GO       ?= go
FUZZTIME ?= 60s
BENCH    ?= .
PKGS     ?= ./...
SEEDS    ?= 100
SEQUENCES ?= 10000
DAMAGE   ?= 1
VM_SUITES ?= trixie bookworm bullseye
KERNEL   ?= ../shared/kernels/amd64.vmlinux.xz
OTHER_KERNEL ?= ../shared/kernels/amd64-7.3.4.vmlinux.xz

# Where make install puts things, DESTDIR before all of it.
PREFIX   ?= /usr/local
DESTDIR  ?=
# The program to install, and one that runs here and knows the same completions.
XOL      ?= bin/xol
XOL_HERE ?= $(XOL)
VERSION  ?= $(shell scripts/version)

# What make run looks at.
PROGRAM  ?= /bin/bash
PLACE    ?= main

# The Unicorn engine, for the commands that run code. Make reads the settings
# that its first rule here makes; without them the build has no engine.
TAGS :=
ENGINE ?= .cache/unicorn.mk
-include $(ENGINE)
ifneq ($(TAGS),)
export CGO_ENABLED ?= 1
endif

.PHONY: run build install install-files uninstall dist deb try pages site test cover vuln race lint fuzz surface damage soak transparency mutate vm newest screenshots page-library bench peers speed clean

run: build
	bin/xol analyze $(PROGRAM) | tail -n 24
	bin/xol explain $(PROGRAM) $(PLACE)

build: | toolchain
	$(GO) build -tags "$(TAGS)" -ldflags "-X main.version=$(VERSION)" -o bin/xol ./cmd/xol

install: build install-files

install-files:
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1" \
		"$(DESTDIR)$(PREFIX)/share/bash-completion/completions" \
		"$(DESTDIR)$(PREFIX)/share/zsh/site-functions" \
		"$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d"
	install -m 755 "$(XOL)" "$(DESTDIR)$(PREFIX)/bin/xol"
	install -m 644 docs/man/*.1 "$(DESTDIR)$(PREFIX)/share/man/man1"
	"$(XOL_HERE)" completion bash > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/xol"
	"$(XOL_HERE)" completion zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_xol"
	"$(XOL_HERE)" completion fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/xol.fish"

uninstall:
	cd "$(DESTDIR)$(PREFIX)" && rm -f bin/xol share/man/man1/xol.1 share/man/man1/xol-*.1 \
		share/bash-completion/completions/xol share/zsh/site-functions/_xol share/fish/vendor_completions.d/xol.fish

dist: | toolchain
	$(GO) run ./scripts/dist -version "$(VERSION)"

deb: | toolchain
	scripts/package/deb "$(VERSION)" dist

try: | toolchain
	scripts/try-install

site: | toolchain
	cd scripts/site && $(GO) test ./... && $(GO) run . -in ../../docs -out ../../dist/site

pages: | toolchain
	$(GO) test ./cmd/xol -run '^TestPages' -update

test: | toolchain
	@$(GO) run ./scripts/tests -timeout 30m -tags "$(TAGS)" $(TESTFLAGS) $(PKGS)

# The packages that users import, with all tests: much is tested from the package above.
COVER ?= 85
cover: | toolchain
	@mkdir -p .cache
	$(GO) test -short -timeout 1h -tags "$(TAGS)" -coverprofile=.cache/cover.out \
		-coverpkg=$$($(GO) list ./... | grep -v -e /internal/ -e /cmd/ -e /scripts/ | paste -sd , -) ./... > .cache/cover.txt || \
		{ grep -v '^ok\|no test files' .cache/cover.txt; exit 1; }
	@$(GO) run ./scripts/cover -least $(COVER) .cache/cover.out

vuln: | toolchain
	@scripts/vuln

race: | toolchain
	CGO_ENABLED=1 $(GO) test -race -timeout 3h -tags "$(TAGS)" ./...

# Vet compiles every package and every test, here without cgo: the static
# commands must not need a C compiler.
lint: | toolchain
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	@$(GO) run ./scripts/words
	CGO_ENABLED=0 $(GO) build ./...
	CGO_ENABLED=0 $(GO) vet ./...
	for os in darwin windows; do GOOS=$$os CGO_ENABLED=0 $(GO) vet ./cmd/xol || exit 1; done
	CGO_ENABLED=0 $(GO) tool staticcheck ./...
ifneq ($(TAGS),)
	$(GO) vet -tags "$(TAGS)" ./...
	$(GO) tool staticcheck -tags "$(TAGS)" ./...
endif

# The go command fuzzes one target at a time.
fuzz: | toolchain
	@set -e; for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

surface: | toolchain
	@$(GO) run ./scripts/surface -tags "$(TAGS)" $(PKGS)

damage: | toolchain
	$(GO) test -tags "$(TAGS)" -run '^TestDamagedFiles$$' -timeout 2h ./cmd/xol -damaged 10000 -damage-seed $(DAMAGE)

# All that the tests say is left in .cache/soak.txt.
soak: | toolchain
	@mkdir -p .cache
	$(GO) test -tags "$(TAGS)" -run '^TestEvery|^TestSequences$$' -timeout 24h -v ./runtime \
		-seeds $(SEEDS) -stride 1 -sequences $(SEQUENCES) > .cache/soak.txt || \
		{ grep -v '^===\|--- PASS' .cache/soak.txt; exit 1; }
	@grep 'runs,\|states\|sequences,' .cache/soak.txt

# Programs with probes at every instruction of theirs and of libc do what they do without.
transparency: | toolchain
	$(GO) test -run '^TestTransparency' -timeout 2h -v ./cmd/xol -transparency

mutate: | toolchain
	$(GO) run ./scripts/mutate -tags "$(TAGS)"

vm: | toolchain
	@for suite in $(VM_SUITES); do scripts/vm/run .cache/vm $$suite || exit 1; done

newest: .cache/newest.mk
	$(MAKE) ENGINE=$< test

screenshots: build site
	@mkdir -p .cache/pages
	ln -sf $(abspath $(KERNEL)) .cache/pages/vmlinux-6.12
	ln -sf $(abspath $(OTHER_KERNEL)) .cache/pages/vmlinux-7.3
	cd .cache/pages && ../../bin/xol report -o kernel.html vmlinux-6.12
	cd .cache/pages && ../../bin/xol report -o kernels.html vmlinux-6.12 vmlinux-7.3
	$(GO) run ./scripts/screenshots -themes light docs/screenshots \
		"report-overview=.cache/pages/kernel.html#/?metric=optimizable" \
		"report-function=.cache/pages/kernel.html#/function/vfs_fallocate+0x1b9" \
		"report-comparison=.cache/pages/kernels.html#/compare?a=0&b=2"
	$(GO) run ./scripts/screenshots -themes dark docs/screenshots \
		"report-overview=.cache/pages/kernel.html#/?metric=optimizable"
	$(GO) run ./scripts/screenshots .cache/pages/site site-first=dist/site/index.html \
		site-tutorial=dist/site/tutorial.html site-rules=dist/site/reference/rules/amd64.html site-json=dist/site/reference/json.html

page-library:
	scripts/vendor-d3

bench: | toolchain
	$(GO) test -tags "$(TAGS)" -run '^$$' -bench '$(BENCH)' -benchmem ./...

ROUNDS ?= 10
peers: build
	cd scripts/peers && $(GO) test ./... && $(GO) run . -rounds $(ROUNDS) -kernels $(abspath $(dir $(KERNEL)))

speed: build
	$(GO) run ./scripts/speed $(KERNEL)

clean:
	rm -rf bin dist .cache

.cache/newest.mk: SUITE := sid
.cache/unicorn.mk .cache/newest.mk: scripts/setup-unicorn scripts/debget
	@mkdir -p .cache
	@scripts/setup-unicorn $(@:.mk=) $(SUITE) > $@.tmp && mv $@.tmp $@ || { rm -f $@.tmp; false; }

# The go command fetches by itself the modules, and the release of Go that
# go.mod asks for. It has to be there, though, and know how to.
export GOTOOLCHAIN ?= auto

.PHONY: toolchain
toolchain:
	@command -v $(GO) >/dev/null || { echo "make: no go command found; install Go 1.21 or later" >&2; exit 1; }
	@case "$$(cd / && $(GO) version)" in \
	*" go1."[0-9].*|*" go1."[0-9]" "*|*" go1.1"[0-9]*|*" go1.20"*) \
		echo "make: $$(cd / && $(GO) version) is too old; install Go 1.21 or later" >&2; exit 1;; \
	esac
