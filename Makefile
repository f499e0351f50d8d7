# Entries for a person and for CI alike. Needs Rust, Python 3.11 or newer and a C compiler; all
# else comes from the package registries into virtual environments under this folder.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules
.ONESHELL:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check
# The reference device on candle tensors is in no wheel, so its tests have to ask for it.
FEATURES := --features specdec-engine/candle
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# Oracles are slow, and their own warnings are not ours to mend.
ORACLES := -W default --timeout 1200

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: wheel ## From nothing to plain and speculative decoding side by side
	$(BIN)/specdec fetch smollm2-135m
	$(BIN)/specdec demo

.PHONY: test
test: test-rust test-python ## All tests but those that need torch

.PHONY: test-rust
test-rust: model ## Tests of the Rust crates
	export SPECDEC_TEST_MODEL_SMOLLM2="$$($(BIN)/specdec fetch smollm2-135m)"
	if cargo nextest --version >/dev/null 2>&1; then
	    cargo nextest run --release --locked $(FEATURES)
	    cargo test --release --locked $(FEATURES) --doc
	else
	    cargo test --release --locked $(FEATURES)
	fi

.PHONY: test-python
test-python: model ## Tests of the Python package, on the installed wheel
	$(BIN)/python $(PIP) --group test
	cargo build --release --locked -p specdec-testkit --bin tiny-model
	$(BIN)/python -m pytest

.PHONY: test-exact
test-exact: model ## The long proofs: every branch of every verifier, speculative text = plain text
	cargo test --release --locked -p specdec-core -- --ignored
	cargo test --release --locked -p specdec-engine --test joint_law --test rollback -- \
	    --ignored --nocapture
	$(BIN)/python $(PIP) --group test
	$(BIN)/python -m pytest tests/exactness

.PHONY: mutants
mutants: ## Plant every bug of tests/mutants in a copy; fail if one lives
	$(PYTHON) scripts/mutants.py

.PHONY: test-oracle
test-oracle: model ## Compare with llama.cpp (own environment, fetches a model of 1.1 GB)
	$(call environment,.venv-oracle,tests/oracle)
	export SPECDEC_TEST_MODEL_SMOLLM2="$$($(BIN)/specdec fetch smollm2-135m)"
	export SPECDEC_TEST_MODEL_QWEN15B="$$($(BIN)/specdec fetch qwen2.5-coder-1.5b)"
	export SPECDEC_TEST_MODEL_GEMMA3="$$($(BIN)/specdec fetch gemma3-270m)"
	.venv-oracle/bin/python -m pytest $(ORACLES) tests/oracle
	cargo test --release --locked $(FEATURES) -p specdec-engine --test oracle_vectors -- --ignored

.PHONY: test-torch
test-torch: test-oracle ## Compare with llama.cpp, torch and transformers (own environments, several GB)
	$(call environment,.venv-torch,tests/torch)
	.venv-torch/bin/python $(PIP) dist/specdec_rs-*.whl
	.venv-torch/bin/python $(PIP) --no-deps --force-reinstall dist/specdec_rs-*.whl
	.venv-torch/bin/python -m pytest $(ORACLES) tests/torch

.PHONY: fuzz
fuzz: ## Fuzz every parser with libFuzzer, a minute each
	export PATH="$(CURDIR)/target/tools/bin:$$PATH"
	command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz --root target/tools
	cargo run --release --locked -p specdec-testkit --bin fuzz-corpus -- fuzz/corpus
	# The sanitizer and the counters of branches are options of the stable compiler only so.
	export RUSTC_BOOTSTRAP=1
	for target in $$(cargo fuzz list); do
	    cargo fuzz run $$target -- -max_total_time=60 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
	        -print_final_stats=1
	done

.PHONY: test-asan
test-asan: ## The kernels' tests under AddressSanitizer, at every instruction level of the machine
	export RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address
	export ASAN_OPTIONS=allocator_may_return_null=1
	export LSAN_OPTIONS="suppressions=$(CURDIR)/scripts/lsan.supp"
	cargo test --release --locked -p specdec-kernels --lib --tests \
	    --target $(HOST) --target-dir target/asan

.PHONY: test-valgrind
test-valgrind: ## The kernels' tests under valgrind, which knows the levels scalar and avx2
	host=$(HOST); host=$${host//-/_}
	export CARGO_TARGET_$${host^^}_RUNNER="valgrind --quiet --error-exitcode=9 --fair-sched=yes"
	# Valgrind has no flush-to-zero mode, which the skipped test turns on.
	cargo test --release --locked -p specdec-kernels --lib --tests --target $(HOST) -- \
	    --test-threads 1 --skip the_callers_float_environment

.PHONY: lint
lint: wheel ## Formatting, clippy, ruff, types, file sizes
	cargo fmt --check
	cargo clippy --release --locked --workspace --all-targets $(FEATURES) -- -D warnings
	# The fuzz targets are a workspace of their own.
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --locked --manifest-path fuzz/Cargo.toml -- -D warnings
	$(BIN)/python $(PIP) --group lint --group test
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python scripts/check_layout.py

.PHONY: wheel
wheel: $(VENV)/ready ## Build the wheel into dist/ and install it into .venv
	rm -f dist/specdec_rs-*.whl
	$(BIN)/maturin build --release --locked --out dist
	$(BIN)/python $(PIP) dist/specdec_rs-*.whl
	$(BIN)/python $(PIP) --no-deps --force-reinstall dist/specdec_rs-*.whl

.PHONY: wheel-manylinux
wheel-manylinux: $(VENV)/ready ## Build the wheel for any Linux with glibc 2.28 into dist/manylinux
	$(BIN)/python $(PIP) ziglang
	rm -rf dist/manylinux
	# Linked by zig, which brings the symbols of old versions of glibc.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --zig \
	    --compatibility manylinux_2_28 --out dist/manylinux

.PHONY: test-wheel
test-wheel: wheel-manylinux ## Install that wheel into a clean environment without Rust, and use it
	$(BIN)/python $(PIP) --group test dist/manylinux/specdec_rs-*.whl
	$(BIN)/python -m pytest tests/wheel

.PHONY: bench
bench: ## Benchmarks of the Rust crates
	cargo bench

.PHONY: model
model: wheel
	$(BIN)/specdec fetch smollm2-135m >/dev/null

# Dependency groups need a pip newer than the one that comes with Python 3.11.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --upgrade 'pip>=25.1' 'maturin>=1.14,<2'
	touch $@

# $(1): folder of the environment; $(2): folder of the tests that say what they need.
define environment
test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
$(1)/bin/python $(PIP) -r $(2)/requirements.txt
endef
