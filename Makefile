# tonlake: `make` prints this menu.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# One lock for everything; each environment takes the extras and groups that it needs from it.
INSTALL := $(BIN)/uv pip install --quiet --require-hashes --constraints requirements.lock \
	--requirements pyproject.toml

# What was compiled once is kept, whatever the environment says: the suite starts many processes.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test coverage long soak tip chain day load fuzz bench streams attack notebooks reports docs editor binary dist arm walk lint types format lock clean

help:  ## print this menu
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet uv
	$(INSTALL) --exact --python .venv --extra tvm --group dev
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	@# Loaded once, so that what a service starts finds its modules compiled: uv does not do it.
	$(BIN)/python -c "import pytest, hypothesis, tonlake.api.command.main, tonlake.api.app, tonlake.api.http.server, tonlake.ingest.run.tail, tonlake.lake.maintenance.schedule"
	@touch $@

setup: $(READY)  ## make the environment in .venv

demo: $(READY)  ## ingest the demo node, check it, serve it (ARGS=--once: stop after the check)
	$(BIN)/tonlake demo $(ARGS)

# Three workers for two cores: while a test of one waits for a server or a timeout, the others work.
test: $(READY) lint types  ## lint, types and the test suite
	$(BIN)/pytest --numprocesses=3 --dist=loadfile

coverage: $(READY)  ## the test suite with lines and branches counted, processes included; C is not
	rm -rf build/coverage
	mkdir -p build/coverage
	$(BIN)/coverage run -m pytest --numprocesses=3 --dist=loadfile
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

LONG := .venv/.long

# Spark and the other engines that read a lake: a gigabyte that the suite itself does without.
$(LONG): $(READY) .ci/duckdb-delta.txt
	$(INSTALL) --python .venv --extra spark --group engines
	$(BIN)/uv pip install --quiet --python .venv --no-deps --require-hashes -r .ci/duckdb-delta.txt
	@touch $@

# What Spark reads object storage with; without Maven, the test of it is skipped.
build/spark-s3: .ci/spark-s3.xml
	-mvn --quiet --batch-mode --file $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory=$(CURDIR)/$@

# The newest CPython, with which the wheel is tried; it takes root, debootstrap and Debian's index.
build/debian-testing:
	mkdir -p build
	-debootstrap --variant=minbase --include=python3.14-venv,ca-certificates testing $@ \
		>build/debian-testing.log || rm -rf $@

long: $(LONG) dist/tonlake build/spark-s3 build/debian-testing  ## the tests that take longer than the suite's budget
	$(BIN)/pytest -m long

BINARY_BIN := build/binary/venv/bin

dist/tonlake: $(READY) .ci/tonlake.spec
	$(PYTHON) -m venv --clear build/binary/venv
	$(INSTALL) --python build/binary/venv --extra tvm --group build
	$(BIN)/uv pip install --quiet --python $(BINARY_BIN)/python --no-deps --editable .
	$(BINARY_BIN)/pyinstaller --noconfirm --log-level ERROR --distpath dist \
		--workpath build/binary .ci/tonlake.spec
	ls -l --block-size=1MB $@

binary:  ## one file with everything in it, dist/tonlake
	rm -f dist/tonlake
	$(MAKE) dist/tonlake

SOAK ?= --blocks 5000 --faults 200 --readers 8 --seed 11

soak: $(READY)  ## a service and clients beside a simulated node, then with faults (SOAK=options)
	mkdir -p build/soak
	$(BIN)/python -m tests.ingest.simulator.soak tests/data/node-demo/demo-node.tar.zst build/soak $(SOAK)

bench: $(READY)  ## measure decode, ingest, queries beside PostgreSQL, HTTP (ARGS=--quick: two minutes)
	$(BIN)/python -m tests.bench $(ARGS)

TIP := --pause-ms 200 --shard-blocks 5 --readers 2 --max-p99-ms 500 --max-load 0.5 --faulty-blocks 1 --faults 0
TIP_MINUTES ?= 10

tip: $(READY)  ## beside a node of 5 masterchain blocks/s and 110 transactions/s (TIP_MINUTES=30)
	mkdir -p build/soak
	$(BIN)/python -m tests.ingest.simulator.soak tests/data/node-demo/demo-node.tar.zst build/soak $(TIP) --blocks $$(($(TIP_MINUTES) * 300))

TIP_BLOCKS ?= 200000

chain: $(READY)  ## follow a long chain of small blocks without pauses (TIP_BLOCKS=200000)
	mkdir -p build/soak
	$(BIN)/python -m tests.ingest.simulator.tip build/soak --blocks $(TIP_BLOCKS) $(ARGS)

day: $(READY)  ## a virtual day of a lake: a commit and a fault every minute (ARGS=--hours=24)
	mkdir -p build/day
	$(BIN)/python -m tests.crash.soak build/day $(ARGS)

load: $(READY)  ## a service that follows a node under load, and under too much (ARGS=options)
	mkdir -p build/load
	$(BIN)/python -m tests.bench.load tests/data/node-demo/demo-node.tar.zst build/load $(ARGS)

streams: $(READY)  ## clients of streams, 100 and 500, at ten commits a second (ARGS=options)
	$(BIN)/python -m tests.api.stream.clients tests/data/node-demo/demo-node.tar.zst $(ARGS)

attack: $(READY)  ## hostile sockets and damaged files under a running service (ARGS=options)
	$(BIN)/pytest -m attack -n0 -s tests/attack tests/api/test_damage.py $(ARGS)

CASES ?= 50000
FUZZ_SEED ?= 1
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g

# The sanitizer looks for what throws exceptions as a process starts: DuckDB throws some.
SANITIZED := LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so.6)" \
	ASAN_OPTIONS=detect_leaks=0

PYTEST_FUZZ := $(BIN)/python -m pytest --override-ini pythonpath="build/fuzz ." -n0 \
	--pythonwarnings ignore

fuzz: $(READY)  ## damaged blocks and bodies through the native parts, built with sanitizers
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(BIN)/python setup.py --quiet build --force \
		--build-lib build/fuzz --build-temp build/fuzz-objects
	$(SANITIZED) $(PYTEST_FUZZ) tests/api/text/native
	$(SANITIZED) FUZZ_CASES=$(CASES) FUZZ_SEED=$(FUZZ_SEED) $(PYTEST_FUZZ) \
		-k "damaged or garbage" tests/ingest/decode/native tests/ingest/derive/body/test_fuzz.py

notebooks: $(READY)  ## the notebooks as .ipynb, for those who live in Jupyter
	mkdir -p build/notebooks
	for path in notebooks/*.py; do $(BIN)/marimo --quiet export ipynb $$path --force \
		--output build/notebooks/$$(basename $$path .py).ipynb || exit 1; done

LAKE ?= .demo/lake

reports: $(READY)  ## the notebooks as HTML files that work offline, in build/reports (LAKE=folder)
	$(BIN)/python notebooks/export $(LAKE) build/reports

docs: $(READY)  ## write the generated pages of docs/ again: data dictionary and settings
	$(BIN)/tonlake schema --markdown > docs/data-dictionary.md
	$(BIN)/tonlake config --markdown 2>/dev/null > docs/settings.md

editor/node_modules: editor/package-lock.json
	cd editor && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

editor: editor/node_modules  ## bundle CodeMirror for /sql (needs Node.js and npm)
	cd editor && node build.js ../api/explorer/static/codemirror.js

DIST_BIN := build/dist/venv/bin

dist: $(READY)  ## source archive and wheel in dist/; the wheel by auditwheel's rules (manylinux)
	rm -rf build/dist dist/*.whl dist/*.tar.gz
	$(PYTHON) -m venv build/dist/venv
	$(INSTALL) --python build/dist/venv --group build
	$(DIST_BIN)/python -m build --no-isolation --outdir build/dist/out .
	PATH=$(CURDIR)/$(DIST_BIN):$$PATH auditwheel repair --wheel-dir dist build/dist/out/*.whl
	mv build/dist/out/*.tar.gz dist/
	ls -l --block-size=1kB dist

ARM := _PYTHON_HOST_PLATFORM=linux-aarch64 CC=aarch64-linux-gnu-gcc \
	LDSHARED="aarch64-linux-gnu-gcc -shared"

arm: dist  ## the wheel for arm64 too, cross-compiled (apt-get install gcc-aarch64-linux-gnu)
	mkdir -p build/dist/arm/source
	tar xzf dist/*.tar.gz --strip-components 1 --directory build/dist/arm/source
	cd build/dist/arm/source && $(ARM) $(CURDIR)/$(DIST_BIN)/python -m build --no-isolation \
		--wheel --outdir ../out .
	PATH=$(CURDIR)/$(DIST_BIN):$$PATH auditwheel repair --wheel-dir dist build/dist/arm/out/*.whl

walk: dist  ## the README from the top in a bare Debian, from the wheel (as root, with debootstrap)
	$(BIN)/pytest -m long -n0 -s tests/walk

lint: $(READY)  ## ruff: lint and format check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## mypy, strict
	$(BIN)/mypy

format: $(READY)  ## ruff: format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(READY)  ## resolve the newest versions into requirements.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
		--group dev --group engines --group build --generate-hashes --no-emit-index-url \
		--no-header pyproject.toml --output-file requirements.lock

clean:  ## remove the environment and everything that was made
	rm -rf .venv .demo build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
