# Short names for what is done often; `make help` lists them. CMakePresets.json holds the builds.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

JOBS ?= $(shell nproc)
PYTHON ?= python3
TORCH_VERSION ?= 2.15.0
VENV := .venv
CLANG_FORMAT ?= $(firstword $(wildcard /usr/bin/clang-format-14) clang-format)
FORMATTED = $(shell find src include tools python tests bench -type f \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.cpp' \) -not -path 'tests/fixtures/*' 2>/dev/null)
LOGS := build/logs

.PHONY: help setup build demo test test-core test-torch op-coverage bench fuzz neon portable format check-format lint \
  clean

help:  ## this list
	@echo "coil: make <target>"
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  \1|\2/' \
	  | awk -F'|' '{printf "%-16s%s\n", $$1, $$2}'

setup:  ## install the packages that a build needs (Debian 12, Ubuntu 24.04)
	@scripts/setup.sh

build: setup  ## build the command at build/coil
	@scripts/build.sh release coil

demo: build  ## compile and run a trained digit classifier on real digits
	@examples/demo/run.sh

test: test-core test-torch  ## all tests

test-core: setup  ## tests that need no torch: units, case tables, lint
	@scripts/test_core.sh

test-torch: setup  ## tests against torch, in .venv (about 5 GB, once)
	@TORCH_VERSION=$(TORCH_VERSION) scripts/test_torch.sh

op-coverage:  ## docs/op_coverage.md: PyTorch's op database through torch.compile, in .venv (ARGS=--full)
	@TORCH_VERSION=$(TORCH_VERSION) scripts/venv.sh tests/requirements.txt
	@scripts/install_python.sh $(VENV)
	@$(VENV)/bin/python scripts/op_coverage.py $(ARGS)

bench: build  ## times beside eager, Inductor, ONNX Runtime and OpenVINO, in .venv (BENCH_ROWS="kernels models")
	@TORCH_VERSION=$(TORCH_VERSION) scripts/bench.sh

fuzz:  ## ten minutes of each fuzz target under ASan and UBSan (FUZZ_SECONDS=600)
	@scripts/fuzz.sh

neon:  ## the fixtures on emulated 64-bit Arm (g++-aarch64-linux-gnu, qemu-user)
	@scripts/neon.sh

portable:  ## build-portable/coil, which needs only glibc where it runs
	@scripts/build.sh portable coil
	@scripts/check_portable.sh build-portable/coil

format:  ## format all C++ with clang-format 14
	@$(CLANG_FORMAT) -i $(FORMATTED)

check-format:  ## fail if `make format` would change a file
	@$(CLANG_FORMAT) --dry-run --Werror $(FORMATTED)

lint:  ## layers, file lengths, headers, folder pages
	@$(PYTHON) scripts/check_layers.py

clean:  ## remove all build folders (not .venv)
	@rm -rf build build-*/
