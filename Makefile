# All tasks; `make help` lists them. Needs Python 3.11 or later with its headers, a C compiler and make.
# All files stay in this directory: .venv/ (environment), build/ and .cache/ (objects), out/ (results), wheels/.

PYTHON ?= python3
JOBS ?= 2
# Tests wait for brokers and JVMs a third of the time.
TEST_WORKERS ?= 3
# What `make quick` runs: no brokers, JVMs, Spark.
QUICK_TESTS := tests/unit tests/conformance tests/property
# Selected tests, for example: make test TESTS=tests/unit PYTEST_ARGS='-k varint'
TESTS ?= tests
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 20

VENV := .venv
PY := $(VENV)/bin/python
BINDINGS := $(shell find kafkacodec -name '_*.pyx')
SOURCES := $(wildcard csrc/*/kc_*.[ch]) $(BINDINGS) $(shell find kafkacodec -name '*.pxd')
PACKAGE := $(shell find kafkacodec -name '*.py' -o -name '*.pyi' -o -name '*.kmsg' -o -name '*.txt' -o -name '*.jinja' -o -name '*.css' -o -name py.typed -o -path '*/sample_data/*' -type f)
EXTENSIONS := $(subst /,.,$(BINDINGS:.pyx=))
C_FILES := $(shell find csrc -name '*.[ch]')
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of Pythons, each of which would compile its modules again.
unexport PYTHONDONTWRITEBYTECODE
# Builds with other switches have their own directories.
SANITIZED := .cache/asan
COVERED := .cache/coverage
PLAIN_BUILD := .cache/plain
# The golden files and the results of Kafka's reader, for the C tests.
GOLDEN_CASES := .cache/golden-cases

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef SIDE_BY_SIDE
.NOTPARALLEL:
endif
.PHONY: help
help: ## list the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up: a stamp file per step, so that a second run takes no time -----------------------------------------------

.PHONY: build
build: $(VENV)/.built ## set up the environment and compile in place

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "kafkacodec needs Python 3.11 or later; point to one with make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	@touch $@

# The requirements of the package with its extras, and an editable install (its first compilation).
$(VENV)/.runtime: $(VENV)/.python pyproject.toml
	$(PY) -m pip install --quiet $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])')
	$(PY) -m pip install --quiet --no-build-isolation --editable '.[all]'
	@touch $@

# Tools for tests, checks and benchmarks.
$(VENV)/.dev: $(VENV)/.runtime tests/compiled_archives.py
	$(PY) -m pip install --quiet --group dev
	$(PY) tests/compiled_archives.py
	@touch $@

# A changed setup.py may change compiler flags, which the incremental build does not detect.
$(VENV)/.built: FORCE = $(if $(and $(wildcard $@),$(filter setup.py,$?)),--force)
$(VENV)/.built: $(VENV)/.runtime $(SOURCES) setup.py
	$(PY) setup.py --quiet build_ext --inplace $(FORCE)
	@touch $@

# --- use --------------------------------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.built ## records, transactions, recovery and SQL on a small log directory
	$(PY) -m kafkacodec.cli demo

# --- checks -----------------------------------------------------------------------------------------------------------

.PHONY: quick
quick: $(VENV)/.dev $(VENV)/.built ## what to run before each commit: style, types, tests without JVM, fewer examples
	$(QUICK_LINT)
	KAFKACODEC_QUICK=1 $(PY) -m pytest -q -n $(JOBS) --dist loadgroup -m 'not slow' $(QUICK_TESTS) $(PYTEST_ARGS)

.PHONY: test
test: checks pytest ## every check and every test, with this Python and for this processor
	@echo "passed; not a part of \`make test\`, but of \`make full\`: $(MATRIX)"

# Each of them uses one processor for most of its time.
.PHONY: checks
checks: $(VENV)/.dev $(VENV)/.built ## lint, tidy, ctest, wheel and instructions, side by side
	$(MAKE) --no-print-directory -j$(JOBS) -Otarget SIDE_BY_SIDE=1 lint tidy ctest wheel instructions

# The same code elsewhere: on other processors and versions of Python and Spark, on another event loop, built otherwise.
MATRIX := wheel-twice machines pythons old-sparks uvloop plain

.PHONY: full
full: test matrix ## `make test` and `make matrix`

.PHONY: matrix
matrix: $(MATRIX) ## other processors, versions of Python and Spark, uvloop's event loop, messages in plain C

# For tests of the SASL mechanism GSSAPI; the Python package is built with the headers.
KERBEROS := /usr/sbin/krb5kdc:krb5-kdc /usr/sbin/kadmin.local:krb5-admin-server kinit:krb5-user gssapi/gssapi.h:libkrb5-dev

.PHONY: pytest
pytest: $(VENV)/.dev $(VENV)/.built
	@tools/system_packages valgrind:valgrind jq:jq || true
	@tools/system_packages chromium:chromium || true
	@tools/system_packages $(KERBEROS) && $(PY) -m pip install --quiet gssapi || true
	@$(PY) -m tests.integration.kafka_archives
	@$(PY) -m tests.integration.spark_archive
	@rm -f .pytest_cache/v/cache/lastfailed
	$(PY) -m pytest -n $(TEST_WORKERS) --dist loadgroup $(TESTS) $(PYTEST_ARGS) || { code=$$?; \
		[ $$code -eq 1 ] || exit $$code; \
		echo "What failed beside other tests runs once more, alone: what passes now depends on the machine's load."; \
		$(PY) -m pytest --last-failed --last-failed-no-failures none $(TESTS) $(PYTEST_ARGS); }

# After changes that make many tests slower or faster: long ones begin first.
.PHONY: durations
durations: ## run all tests, and write how long each file took to tests/durations.txt
	KAFKACODEC_DURATIONS=1 $(MAKE) --no-print-directory pytest

.PHONY: broker-answers
broker-answers: $(VENV)/.dev $(VENV)/.built ## what Apache Kafka 3.9.1, 4.1.0 and 4.4.0 answer to the scripts of tests/differential
	$(PY) -m tests.differential record

.PHONY: cluster-proof
cluster-proof: $(VENV)/.dev $(VENV)/.built ## clients of three brokers that are killed again and again, for about 40 minutes
	KAFKACODEC_LONG=1 $(PY) -m pytest -q tests/integration/test_client_cluster.py tests/property/test_group_machines.py

# What kills processes, brokers and leaders again and again, and the commands in all forms over every directory; `make
# test` does it once each. Each variable is read by one or two of the files.
LONG_PROOFS := KAFKACODEC_LONG=1 KAFKACODEC_KILLS=all KAFKACODEC_REPLICAS=4 KAFKACODEC_BROKER_STREAM_KILLS=20 \
	KAFKACODEC_LIVE_STREAM_SECONDS=120 KAFKACODEC_LIVE_STREAM_KILLS=8 KAFKACODEC_LIVE_VERIFY_SECONDS=60 KAFKACODEC_SWEEP=full
.PHONY: proofs
proofs: cluster-proof object-stores ## every proof in its long form, for about two hours
	$(LONG_PROOFS) $(PY) -m pytest -q $(addprefix tests/integration/, test_spark_kills.py test_spark_exactly_once.py \
		test_spark_export_kills.py test_spark_broker_kills.py test_spark_live_broker.py test_spark_replicas.py \
		test_broker_killed.py test_broker_killed_streams.py test_log_writer_killed.py test_verify_live_broker.py \
		test_command_everywhere.py test_rewrite_servers.py) tests/property/test_values_protobuf.py \
		tests/conformance/test_flipped_bits.py tests/conformance/test_flipped_side_files.py

# Servers with the interfaces of S3, Google Cloud Storage and Azure, by their own package managers: Go and npm.
STORES := .cache/stores
.PHONY: object-stores
object-stores: $(VENV)/.dev $(VENV)/.built $(STORES)/.installed ## logs in object stores other than the one of `make test`
	$(PY) -m pytest -q tests/integration/other_stores.py

$(STORES)/.installed:
	mkdir -p $(STORES)
	GOBIN=$(CURDIR)/$(STORES) go install github.com/versity/versitygw/cmd/versitygw@latest
	GOBIN=$(CURDIR)/$(STORES) go install github.com/fsouza/fake-gcs-server@latest
	npm install --silent --prefix $(STORES) azurite
	@touch $@

# KAFKA07_GIT is a git directory of apache/kafka with its tags: nothing of it is kept here but what is compiled.
.PHONY: kafka07-proof
kafka07-proof: $(VENV)/.dev $(VENV)/.built ## a real Kafka 0.7.2, built from KAFKA07_GIT, with the broker and the clients
	test -d .cache/kafka07/classes || $(PY) -m tests.integration.kafka07_real "$(KAFKA07_GIT)" .cache/kafka07
	KAFKACODEC_KAFKA07=.cache/kafka07 $(PY) -m pytest -q tests/integration/test_kafka07_real.py

# Go's module proxy has the tests of franz-go and sarama, npm those of librdkafka; git gets those of aiokafka, unless
# AIOKAFKA is a checkout. Takes an hour.
.PHONY: client-suites
client-suites: $(VENV)/.dev $(VENV)/.built ## tests of franz-go, sarama, librdkafka and aiokafka against the broker: what passes, what fails and why
	$(PY) -m tests.integration.client_suites
	$(PY) -m tests.integration.sarama_suite
	$(PY) -m tests.integration.librdkafka_suite
	$(PY) -m tests.integration.aiokafka_suite $(AIOKAFKA)

# Clients take uvloop's event loop where uvloop is installed; the other tests are to run on asyncio's own.
.PHONY: uvloop
uvloop: $(VENV)/.dev $(VENV)/.built .cache/uvloop/.installed ## the clients on uvloop's event loop
	PYTHONPATH=.cache/uvloop $(PY) -m pytest -q -n $(JOBS) $(addprefix tests/unit/test_client_, network.py addresses.py driver.py \
		connection.py opening.py bad_peers.py lying_brokers.py consumer_faces.py consumer_group.py group_callbacks.py \
		deliveries.py dropped.py producer_faces.py producer_waiting.py without_acks.py)

.cache/uvloop/.installed: $(VENV)/.python
	$(PY) -m pip install --quiet --target $(@D) uvloop
	@touch $@

# Besides the version in .venv. Each has 450 MB, in a separate environment that takes all other packages from .venv.
SPARK_VERSIONS := 3.5 4.0 4.1 4.2
# The oldest one that is supported, and the last that is not.
.PHONY: old-sparks
old-sparks: .cache/spark-3.5/.installed .cache/spark-4.0/.installed
	KAFKACODEC_MATRIX=1 $(PY) -m pytest -q tests/integration/test_spark_versions.py

.PHONY: spark-versions
spark-versions: $(SPARK_VERSIONS:%=.cache/spark-%/.installed) ## what older versions of Spark can do, and what they say
	KAFKACODEC_MATRIX=1 $(PY) -m pytest -q tests/integration/test_spark_versions.py

SITE := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
.cache/spark-%/.installed: | $(VENV)/.dev $(VENV)/.built
	$(PY) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet 'pyspark==$*.*'
	$(PY) $(SITE) > "$$($(@D)/bin/python $(SITE))/zz_others.pth"
	@touch $@

# Without the library of a codec, the decode fuzz target uses its records as they are.
CODEC_HEADERS := zlib.h:zlib1g-dev lz4.h:liblz4-dev zstd.h:libzstd-dev snappy-c.h:libsnappy-dev

.PHONY: plain
plain: $(VENV)/.dev ## the tests of messages without the code for known versions of CPython
	PLAIN=1 $(PY) setup.py --quiet build --build-base $(PLAIN_BUILD) --build-lib $(PLAIN_BUILD)/lib
	$(PY) -m pytest -q -n $(JOBS) -o pythonpath='$(PLAIN_BUILD)/lib .' tests/unit/test_message_*.py tests/conformance/test_messages.py

.PHONY: ctest
ctest: $(GOLDEN_CASES)
	@tools/system_packages $(CODEC_HEADERS) || true
	$(MAKE) --no-print-directory -j$(JOBS) -Otarget -C csrc test golden

$(GOLDEN_CASES): tests/golden_cases.py tests/corpus.py tests/data/kafka/manifest.json | $(VENV)/.dev $(VENV)/.built
	$(PY) -m tests.golden_cases $@

.PHONY: machines
machines: $(GOLDEN_CASES) ## the C tests under MemorySanitizer and ThreadSanitizer, and on other processors (emulated)
	@if tools/cross_compilers; then $(MAKE) --no-print-directory -j$(JOBS) -Otarget -C csrc msan tsan machines; fi

# Seconds, as soon as mypy has its cache.
define QUICK_LINT
$(PY) -m ruff check .
$(PY) -m ruff format --check .
$(PY) -m mypy
$(PY) tools/check_docs.py
$(VENV)/bin/lint-imports --no-logo
$(PY) tools/check_imports.py
$(PY) tools/check_sizes.py
$(PY) tools/check_numbers.py
endef

.PHONY: lint
lint: $(VENV)/.dev $(VENV)/.built ## style, types, dependencies between packages, stubs
	$(QUICK_LINT)
	$(VENV)/bin/clang-format --dry-run --Werror $(C_FILES)
	$(PY) -m mypy.stubtest --mypy-config-file pyproject.toml --ignore-disjoint-bases --ignore-unused-allowlist \
		--allowlist tests/typing/stubtest.txt $(EXTENSIONS)
	PYTHONPATH=. $(PY) tools/message_stubs.py --check
	PYTHONPATH=. $(PY) tools/protocol_docs.py --check
	PYTHONPATH=. $(PY) tools/client_docs.py --check
	PYTHONPATH=. $(PY) tools/speed_tables.py --check

# Takes a minute of processor time.
.PHONY: tidy
tidy: $(VENV)/.dev ## bugs that clang-tidy finds in the C library
	printf '%s\n' $(wildcard csrc/*/kc_*.c) | xargs -P $(JOBS) -I {} $(VENV)/bin/clang-tidy --quiet {} -- -std=c11 -pthread -Icsrc

# The jars of a release: kafka-clients, and for the data schemas the coordinator, raft, metadata and storage jars.
# Default: the newest release used by the tests, which download it (tests/integration/kafka_jars.py).
JARS ?= $(wildcard .cache/test-java/newest/kafka-*.jar)
.PHONY: schemas-check
schemas-check: $(VENV)/.dev $(VENV)/.built ## the changes from the message definitions in JARS of a Kafka release
	PYTHONPATH=. $(PY) tools/schemas.py check $(JARS)

.PHONY: format
format: $(VENV)/.dev ## rewrite Python and C in the project's style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .
	$(VENV)/bin/clang-format -i $(C_FILES)

BUILD_SANITIZED = SANITIZE=1 $(PY) setup.py --quiet build --build-base $(SANITIZED) --build-lib $(SANITIZED)/lib
# Also for the processes that tests start: the sanitized build comes first on their path, and their directory is not on it.
SANITIZED_RUN = LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libstdc++.so.6)" PYTHONMALLOC=malloc \
	PYTHONSAFEPATH=1 PYTHONPATH='$(CURDIR)/$(SANITIZED)/lib:$(CURDIR)' PYCRYPTODOME_DISABLE_DEEPBIND=1 \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=64 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

# PYTHONS: interpreters; each gets a separate environment and wheel in .cache/lifetimes.
PYTHONS ?=
.PHONY: lifetimes
lifetimes: $(VENV)/.dev $(VENV)/.built ## every entry point x exporter x way to end, on this Python and on PYTHONS
	$(PY) -m tests.lifetime.matrix
	$(if $(PYTHONS),$(PY) -m tests.lifetime.pythons $(PYTHONS))

# Left out: Spark's JVM and its workers do not run with a preloaded sanitizer, nor do valgrind and Chromium; tests/limits
# measure memory and instructions, which a sanitizer multiplies.
.PHONY: asan
asan: $(VENV)/.dev ## the suite under AddressSanitizer and UndefinedBehaviorSanitizer (not Spark and Java)
	$(BUILD_SANITIZED)
	$(MAKE) --no-print-directory -j$(JOBS) -Otarget -C csrc asan
	@echo "left out: tests marked spark, java, go, node or unsanitized (programs that do not run under AddressSanitizer) and tests/limits"
	$(SANITIZED_RUN) $(PY) -m pytest -n $(JOBS) --dist loadgroup -o pythonpath='$(SANITIZED)/lib .' \
		-m 'not spark and not java and not go and not node and not unsanitized' --ignore tests/limits tests $(PYTEST_ARGS)

# Fuzz targets in Python are in tests/fuzz.
.PHONY: fuzz
fuzz: $(VENV)/.dev ## replay and mutate the fuzz corpus for FUZZ_SECONDS per target
	@tools/system_packages $(CODEC_HEADERS) || true
	rm -f .cache/csrc/found/*.log
	$(MAKE) --no-print-directory -C csrc fuzz FUZZ_SECONDS=$(FUZZ_SECONDS)
	$(PY) -m tests.fuzz.counts .cache/csrc/found/*.log
	$(BUILD_SANITIZED)
	$(SANITIZED_RUN) $(PY) -m tests.fuzz.messages --seconds $(FUZZ_SECONDS)
	$(SANITIZED_RUN) $(PY) -m tests.fuzz.connection --seconds $(FUZZ_SECONDS)

# Counters of branches are ignored there: the corpus stays small, and two to three times as many inputs run.
.PHONY: fuzz-deep
fuzz-deep: $(VENV)/.dev ## only record sets for FUZZ_SECONDS, in a faster build; findings are then run with AddressSanitizer
	@tools/system_packages $(CODEC_HEADERS) || true
	rm -f .cache/csrc/found/*.log
	$(MAKE) --no-print-directory -C csrc fuzz-clang FUZZ_BUILD=deep FUZZ_TARGETS=decode FUZZ_MAX_LEN=1024 \
		FUZZ_OPTIONS=-use_counters=0 FUZZ_SECONDS=$(FUZZ_SECONDS)
	$(PY) -m tests.fuzz.counts .cache/csrc/found/*.log
	$(MAKE) --no-print-directory -C csrc fuzz-found FUZZ_TARGETS=decode

.PHONY: fuzz-java
fuzz-java: $(VENV)/.dev $(VENV)/.built ## damaged record sets, compared with Kafka's reader, for FUZZ_SECONDS
	PYTHONPATH=. $(PY) -m tests.fuzz.java --seconds $(FUZZ_SECONDS)

.PHONY: faults
faults: $(VENV)/.dev $(VENV)/.built ## writing with full disks, errors, short writes and kills at every system call
	KAFKACODEC_FAULTS=all $(PY) -m pytest -n $(JOBS) tests/integration/test_faults.py $(PYTEST_ARGS)

.PHONY: coverage
coverage: $(VENV)/.dev ## line coverage of Python and C, reports in out/coverage
	$(PY) -m pip install --quiet --group coverage
	COVERAGE=1 $(PY) setup.py --quiet build --build-base $(COVERED) --build-lib $(COVERED)/lib
	find $(COVERED) -name '*.gcda' -delete
	$(PY) -m coverage erase
	PYTHONSAFEPATH=1 PYTHONPATH='$(CURDIR)/$(COVERED)/lib:$(CURDIR)' $(PY) -m coverage run -m pytest -o pythonpath='$(COVERED)/lib .' -m 'not spark and not java and not go and not node' tests $(PYTEST_ARGS)
	$(PY) -m coverage report --skip-covered
	$(PY) -m coverage html --quiet --directory out/coverage/python
	mkdir -p out/coverage/c
	$(VENV)/bin/gcovr --root . --filter csrc/ --object-directory $(COVERED) --txt --html-details out/coverage/c/index.html $(COVERED)

.PHONY: bench
bench: $(VENV)/.dev $(VENV)/.built .cache/uvloop/.installed ## all rates beside peers, for half an hour: tables, and a page with plots, .cache/bench/index.html
	$(PY) -m benchmarks --save .cache/bench
	$(PY) -m benchmarks --live --save .cache/bench
	$(PY) -m benchmarks --brokers --save .cache/bench

.PHONY: instructions instructions-update
instructions: $(VENV)/.dev $(VENV)/.built ## fails if core calls take more instructions than in benchmarks/instructions.json
	@tools/system_packages valgrind:valgrind || true
	$(PY) -m benchmarks.instructions

instructions-update: $(VENV)/.dev $(VENV)/.built ## write the current counts to benchmarks/instructions.json
	$(PY) -m benchmarks.instructions --update

# --- products ---------------------------------------------------------------------------------------------------------

.PHONY: wheel
wheel: .cache/wheel ## build a wheel from the sdist into wheels/ and test it in an empty directory

.cache/wheel: $(VENV)/.dev $(SOURCES) $(PACKAGE) pyproject.toml setup.py MANIFEST.in wheels/check.py wheels/contents.py wheels/smoke_test.py
	$(PY) wheels/check.py
	@touch $@

.PHONY: release
release: $(VENV)/.dev ## whether this version can be released: changelog, clean tree, the same wheel twice; then which tag to push
	$(PY) wheels/release.py
	$(PY) wheels/check.py --twice

.PHONY: wheel-twice
wheel-twice: $(VENV)/.dev ## the same wheel from two builds, the second with another directory, time zone, language and hash seed
	$(PY) wheels/check.py --twice

.PHONY: pythons
pythons: .cache/pythons ## a wheel for each other CPython found here, and the tests that depend on the version

.cache/pythons: $(VENV)/.dev $(SOURCES) $(PACKAGE) pyproject.toml setup.py tests/pythons.py tests/interpreters.py
	$(PY) -m tests.pythons
	KAFKACODEC_MATRIX=1 $(PY) -m pytest -q tests/lifetime/test_lifetimes.py::test_another_python
	@touch $@

.PHONY: docs
docs: $(VENV)/.dev $(VENV)/.built ## the documentation as a site, with search and all public names, into out/docs
	$(PY) -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(PY) -m mkdocs build --quiet --config-file tools/mkdocs.yml

.PHONY: clean
clean: ## remove all files created by make
	rm -rf $(VENV) build .cache out wheels/*.whl *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find kafkacodec -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	$(MAKE) --no-print-directory -C csrc clean
