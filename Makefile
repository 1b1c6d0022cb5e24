# The front door. Every target installs what it lacks; `make` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
PYTHON := $(VENV)/bin/python
IOLAB := $(VENV)/bin/iolab
STAMPS := .stamps
# tools that setup put into the environment (Node among them) come first; cargo may be in the user's own directory
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH):$(HOME)/.cargo/bin

RUST := Cargo.toml $(wildcard crates/*/Cargo.toml) $(shell find crates/*/src -type f)
PROBE := python/iolab/_probe/iolab-probe
WEB := web/.npmrc $(wildcard web/*.json web/*.ts) $(shell find web/src -type f)
BUNDLE := python/iolab/output/report/static/report.js

# Targets that people type are described after "##", those of maintainers after "#.".
.PHONY: help
help:
	@grep -hE '^[a-z-]+:.* ## ' $(MAKEFILE_LIST) | sed -E 's/:.* ## /\t/' | expand -t 12
	@echo "for maintainers, described by make help-maintainers:"
	@echo $$(grep -hoE '^[a-z-]+:.* #\. ' $(MAKEFILE_LIST) | sed 's/:.*//') | fold -sw 68 | sed 's/^/            /'

.PHONY: help-maintainers
help-maintainers:
	@grep -hE '^[a-z-]+:.* #\. ' $(MAKEFILE_LIST) | sed -E 's/:.* #\. /\t/' | expand -t 16

.PHONY: setup
setup: $(STAMPS)/core $(PROBE) $(BUNDLE) ## Install what is missing; .venv/bin/iolab is ready afterwards

$(STAMPS)/system: scripts/install-system
	@scripts/install-system build run
	@mkdir -p $(@D) && touch $@

$(STAMPS)/browser: scripts/install-system
	@scripts/install-system browser
	@mkdir -p $(@D) && touch $@

$(STAMPS)/filesystems: scripts/install-system
	@scripts/install-system test
	@mkdir -p $(@D) && touch $@

$(STAMPS)/venv: requirements/setup.lock $(STAMPS)/system
	@echo "Python packages: about 220 MB to fetch, 640 MB on disk" >&2
	scripts/install-python requirements/setup.lock
	@touch $@

$(STAMPS)/dev: requirements/dev.lock $(STAMPS)/venv $(STAMPS)/node-dev
	@echo "Python packages for tests: about 110 MB to fetch, 400 MB on disk" >&2
	scripts/install-python requirements/dev.lock
	@touch $@

# what tests and checks of the pages use
$(STAMPS)/node-dev: $(STAMPS)/node
	@echo "npm packages for tests: about 40 MB to fetch, 105 MB on disk" >&2
	scripts/with-node npm --prefix web ci --no-audit --no-fund --loglevel=error
	@touch $@

Cargo.lock: crates.lock Cargo.toml scripts/cargo_lock.py $(STAMPS)/system
	python3 scripts/cargo_lock.py
	@touch $@

# verbose, since pip is silent otherwise while cargo builds
$(STAMPS)/core: $(STAMPS)/venv Cargo.lock $(RUST) pyproject.toml
	@echo "Rust crates: 13 MB to fetch, 250 MB on disk once built" >&2
	$(PYTHON) -m pip install --verbose --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(PROBE): $(STAMPS)/system Cargo.lock $(RUST) scripts/build-probe
	scripts/build-probe

$(STAMPS)/node: $(STAMPS)/venv requirements/node.lock web/package-lock.json
	@scripts/with-node true 2>/dev/null || { echo "Node.js: 61 MB to fetch, 200 MB on disk" >&2; scripts/install-python requirements/node.lock; }
	@echo "npm packages: about 20 MB to fetch, 61 MB on disk" >&2
	scripts/with-node npm --prefix web ci --omit=dev --no-audit --no-fund --loglevel=error
	@touch $@

$(BUNDLE): $(STAMPS)/node $(WEB)
	scripts/with-node npm --prefix web run --silent build
	@touch $@

.PHONY: demo
demo: setup ## Run studies/quickstart.toml with fio, compare, write the report
	@if [ -e results/quickstart ]; then \
	  kept=results/quickstart-$$(date -r results/quickstart +%Y%m%dT%H%M%S); \
	  mv results/quickstart "$$kept"; echo "the results of last time are now in $$kept" >&2; fi
	$(IOLAB) run studies/quickstart.toml -o results/quickstart
	$(IOLAB) compare results/quickstart
	$(IOLAB) report results/quickstart -o results/quickstart/report.html

GATE := $(PYTHON) scripts/gate.py
.PHONY: test
test: setup $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/filesystems ## Run every test that this machine can run; skips are printed with their reasons
	$(GATE) test

.PHONY: test-all
test-all: setup $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/filesystems #. Run every test at full depth, for a release or at night; a retried test is a failure
	$(GATE) --deep check test

# Rust is compiled once for all steps and all clones of a user, without link-time optimization. mypy keeps what it knows about
# unchanged files (by their hash).
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/iolab
.PHONY: gate
gate: export CARGO_TARGET_DIR ?= $(CACHE)/cargo-$(shell sha256sum crates.lock | cut -c1-12)
gate: export CARGO_PROFILE_RELEASE_LTO ?= off
gate: export MYPY_CACHE_DIR ?= $(CACHE)/mypy
gate: setup $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/filesystems ## Run what a change must pass: check, test, wheel and rig in one table
	$(GATE) check wheel test rig

.PHONY: fast
fast: setup $(STAMPS)/dev ## Lint, types, and the first case of each quick test that needs nothing real
	$(GATE) fast

# Two cores that emulate a CPU need their time: half an hour from nothing, a few minutes once the image is there.
RIG := rig-test
.PHONY: rig-test
rig-test: setup $(STAMPS)/dev #. Build what is missing of the OpenZFS rig, start it, test on it, take it down
	@scripts/install-system rig
	$(IOLAB) rig build openzfs
	@trap '$(IOLAB) rig down $(RIG)' EXIT; $(IOLAB) rig up openzfs --name $(RIG) --network $(RIG) --disks 8 --disk-iops 170 --disk-size 4g; \
	  IOLAB_TEST_RIG=$(RIG) $(PYTHON) -m pytest tests/rig tests/contract/test_contract_hosts.py -k rig

# The studies of docs/guides/openzfs-*.md: an hour and more where the CPU is emulated. Results that are there are not measured again.
GUIDES := rig-guides
.PHONY: guides
guides: setup $(STAMPS)/dev #. Measure what the guides about OpenZFS show, on a rig, and renew them with their pictures
	@scripts/install-system rig
	$(IOLAB) rig build openzfs
	@trap '$(IOLAB) rig down $(GUIDES)' EXIT; $(IOLAB) rig up openzfs --name $(GUIDES) --disks 10 --disk-iops 170 --disk-size 4g --fast-disks 1 --memory 4g; \
	  $(PYTHON) scripts/guides.py --host rig:$(GUIDES)

.PHONY: tour
tour: setup $(STAMPS)/dev $(STAMPS)/browser #. Make build/tour.webm, a clip of a minute that shows the pages
	$(PYTHON) scripts/tour.py -o build/tour.webm

.PHONY: looks
looks: setup $(STAMPS)/dev $(STAMPS)/browser #. Make pictures of all pages of PATHS (recordings, results, reports) in build/looks, at four widths, light and dark
	$(PYTHON) scripts/looks.py -o build/looks $(PATHS)

.PHONY: images
images: setup $(STAMPS)/dev $(STAMPS)/browser #. Renew the pictures of the README and of the worksheet's guide; RESULTS=DIR: that of the report, too
	$(PYTHON) scripts/images.py $(RESULTS)

.PHONY: stories
stories: setup $(STAMPS)/dev $(STAMPS)/browser $(STAMPS)/filesystems #. Renew the pictures of the stories (docs/guides/story-*.md) from loads of their own; as root
	scripts/stories

# The tools alone, zig among them (100 MB), in an environment of their own.
TOOLS := build/tools
$(STAMPS)/dist: requirements/dist.lock $(STAMPS)/system
	scripts/install-python requirements/dist.lock $(TOOLS)
	@touch $@

# botocore needs an older python-dateutil than other packages of the tests have: an environment of its own
ARCHIVE := build/archive-test
$(STAMPS)/archive-test: requirements/dev.lock requirements/archive-test.lock $(STAMPS)/system
	@echo "Python packages to test archives in S3 and with Spark: about 500 MB more to fetch" >&2
	scripts/install-python requirements/dev.lock $(ARCHIVE)
	scripts/install-python requirements/archive-test.lock $(ARCHIVE)
	@touch $@

# A server of S3, for tests. Where it can't be built, they are skipped, and the next call tries again.
S3_SERVER := requirements/s3-server
S3_PROGRAM := $(CACHE)/s3-server-$(shell sha256sum $(S3_SERVER)/go.sum | cut -c1-12)/versitygw
$(S3_PROGRAM):
	@echo "Go modules of a server of S3: about 105 MB to fetch, 750 MB on disk once compiled" >&2
	@go build -C $(S3_SERVER) -mod=readonly -trimpath -ldflags='-s -w' -o $@ tool || \
	  echo "no server of S3 was built, which needs Go 1.25 or newer: tests of archives in S3 are skipped" >&2

.PHONY: archive-test
archive-test: setup $(STAMPS)/archive-test $(S3_PROGRAM) #. Test archives in S3 and with Spark, by servers on loopback that fail, are slow and are killed
	PATH="$(abspath $(ARCHIVE))/bin:$(dir $(S3_PROGRAM)):$$PATH" PYTHONPATH=python IOLAB_TEST_DEPTH=all $(ARCHIVE)/bin/python -m pytest tests/unit/archive/test_archive_s3.py tests/unit/archive/test_archive_spark.py

# mkdocs and its theme alone, in an environment of their own
MKDOCS := build/docs
SITE := build/site
$(STAMPS)/docs: requirements/docs.lock $(STAMPS)/system
	@echo "Python packages for the documentation: about 20 MB to fetch, 190 MB on disk" >&2
	scripts/install-python requirements/docs.lock $(MKDOCS)
	@touch $@

.PHONY: docs
docs: $(STAMPS)/docs ## Build the documentation in build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(MKDOCS)/bin/mkdocs build --strict
	@echo "the documentation is in $(SITE)/index.html" >&2

.PHONY: man
man: setup #. Write the manual pages, from the commands themselves, into build/man
	$(PYTHON) scripts/manual.py build/man

SHARE := build/share
.PHONY: share
share: man
	@rm -rf $(SHARE) && mkdir -p $(addprefix $(SHARE)/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	@$(IOLAB) completion bash >$(SHARE)/bash-completion/completions/iolab
	@$(IOLAB) completion zsh >$(SHARE)/zsh/site-functions/_iolab
	@$(IOLAB) completion fish >$(SHARE)/fish/vendor_completions.d/iolab.fish
	@cp build/man/*.1 $(SHARE)/man/man1

PREFIX := /usr/local
.PHONY: install
install: share ## Install into PREFIX=/usr/local, with manual pages and completions
	python3 -m venv $(DESTDIR)$(PREFIX)/lib/iolab
	$(DESTDIR)$(PREFIX)/lib/iolab/bin/python -m pip install --disable-pip-version-check --require-hashes -r requirements/run.lock
	$(PYTHON) -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build .
	$(DESTDIR)$(PREFIX)/lib/iolab/bin/python -m pip install --disable-pip-version-check --no-deps --force-reinstall build/iolab-*.whl
	mkdir -p $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share
	ln -sf ../lib/iolab/bin/iolab $(DESTDIR)$(PREFIX)/bin/iolab
	cp -R $(SHARE)/. $(DESTDIR)$(PREFIX)/share/

# TARGETS: triples of processors. TWICE=1: build a second time; both must be equal.
TARGETS :=
TWICE :=
.PHONY: dist
dist: share $(STAMPS)/dist ## Build sdist and wheel in dist/, with checksums (TARGETS=..., TWICE=1)
	$(TOOLS)/bin/python scripts/dist.py $(addprefix --target=,$(TARGETS)) $(if $(TWICE),--twice)

.PHONY: test-wheel
test-wheel: dist $(STAMPS)/dev #. Install the wheel into a fresh environment outside the clone and run its commands there
	$(PYTHON) -m pytest -q tests/wheel

TAG :=
.PHONY: release
release: test-wheel #. Publish dist/ as the release of TAG=v... on the forge (gh, GH_TOKEN)
	@[ "$(TAG)" = "v$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)" ] || { echo "TAG is not the version in Cargo.toml" >&2; exit 1; }
	gh release create $(TAG) dist/* --verify-tag --title "iolab $(TAG)" --notes "See CHANGELOG.md"

.PHONY: check
check: setup $(STAMPS)/dev ## Lint and type-check everything, documentation and licence lines included
	$(GATE) check

.PHONY: generate
generate: setup $(STAMPS)/dev ## Renew committed schemas and TypeScript types (a stale one fails a test)
	$(PYTHON) scripts/generate.py

.PHONY: prose
prose: $(STAMPS)/venv #. List private words and where they are; lower the limits of the prose check to the present counts
	$(PYTHON) scripts/prose.py --renew
	$(PYTHON) scripts/prose.py --list 30

.PHONY: golden
golden: setup $(STAMPS)/dev ## Renew the full texts in tests/golden; git shows what changed
	@rm -rf tests/golden
	IOLAB_GOLDEN=renew $(PYTHON) -m pytest -q $$(grep -rlE '\bgolden\(' tests --include='test_*.py' | grep -v test_golden.py)

.PHONY: bench
bench: setup $(STAMPS)/dev #. Measure speed against named peers and limits, as ratios
	@for bench in benchmarks/bench_*.py; do $(PYTHON) $$bench; done

# Each reader for so long. With a nightly compiler and cargo-fuzz every target runs under libFuzzer, seeded with the regression corpus;
# elsewhere the property tests of damaged input run with as many cases as fit.
MINUTES := 10
CORE := crates/iolab-core
.PHONY: fuzz
fuzz: #. Fuzz every reader of traces, frames and trace rings, MINUTES=10 each
	@if cargo +nightly fuzz --version >/dev/null 2>&1; then cd $(CORE); for target in $$(cargo +nightly fuzz list); do \
	  mkdir -p fuzz/corpus/$$target; echo "== $$target, $(MINUTES) minutes"; \
	  cargo +nightly fuzz run -s address $$target fuzz/corpus/$$target tests/corpus -- -max_total_time=$$(($(MINUTES) * 60)) \
	    -rss_limit_mb=1024 -timeout=10 -max_len=65536 -print_final_stats=1 -verbosity=0; done; \
	else echo "no nightly compiler with cargo-fuzz (cargo install cargo-fuzz): property tests instead" >&2; end=$$((SECONDS + $(MINUTES) * 60)); \
	  while [ $$SECONDS -lt $$end ]; do PROPTEST_CASES=20000 cargo test --quiet --release -p iolab-core --test damage --test maps --test frames --test tracefs --test block; done; fi

LOCK = $(VENV)/bin/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header \
  --python-version 3.11
.PHONY: lock
lock: $(STAMPS)/venv #. Renew requirements/*.lock, the modules of the server of S3, and crates.lock (hashes, no URLs)
	$(LOCK) pyproject.toml --group pyproject.toml:dev -o requirements/dev.lock
	$(LOCK) -c requirements/dev.lock pyproject.toml -o requirements/run.lock
	$(LOCK) -c requirements/dev.lock pyproject.toml --group pyproject.toml:build -o requirements/setup.lock
	# botocore needs another python-dateutil
	sed -n '/^python-dateutil/d; s/^\([A-Za-z0-9._-]*==[^ ;]*\).*/\1/p' requirements/dev.lock > build/constraints.txt
	$(LOCK) -c build/constraints.txt --group pyproject.toml:archive-test -o requirements/archive-test.lock
	for group in node dist docs uv; do $(LOCK) -c requirements/dev.lock --group pyproject.toml:$$group -o requirements/$$group.lock; done
	$(PYTHON) scripts/cargo_lock.py --renew
	cd $(S3_SERVER) && go get -tool github.com/versity/versitygw/cmd/versitygw@latest && go mod tidy

.PHONY: clean
clean: ## Remove what was built; results stay
	rm -rf $(VENV) $(STAMPS) target build dist web/node_modules python/iolab/output/report/static python/iolab/_probe python/iolab/_core*.so
