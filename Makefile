# SPDX-License-Identifier: Apache-2.0
# The commands of the project; `make help` lists them. CMake does the building: see CMakePresets.json.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
NVCC ?= $(shell command -v nvcc || ls /usr/local/cuda/bin/nvcc 2>/dev/null)
ifneq ($(NVCC),)
export CUDACXX ?= $(NVCC)
endif
SOURCES = git ls-files -co --exclude-standard '*.hpp' '*.cuh' '*.cpp' '*.cu'

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing (Debian, as root), or say what is
	@scripts/setup

# Where the demo runs: compiling for a GPU that is not there takes a quarter of an hour.
DEMO = $(if $(and $(NVCC),$(shell nvidia-smi -L 2>/dev/null)),cuda,host)
.PHONY: demo
demo: setup ## Build a dynamic graph on the heap, on a GPU if there is one
	@scripts/build $(DEMO) warpheap_cli
	build/$(DEMO)/bin/warpheap graph

.PHONY: build
build: setup ## The tool: build/host/bin/warpheap, and build/cuda/bin/warpheap where nvcc is
	@scripts/build host warpheap_cli
	@if [ -n "$(NVCC)" ]; then scripts/build cuda warpheap_cli; else echo "SKIP: no nvcc, so no build/cuda/bin/warpheap"; fi

.PHONY: archive
archive: setup ## Device malloc to link with, for programs without C++20: build/archive (needs nvcc)
	@scripts/build host archive
	@cmake --install build/host --prefix build/archive --component Archive

PREFIX ?= /usr/local
.PHONY: install
install: setup ## Tool, manual page, completion, headers and archive to PREFIX (/usr/local); DESTDIR goes before it
	@scripts/build $(DEMO) warpheap_cli warpheap_descriptions archive
	@for component in Tool Development Archive; do \
	  DESTDIR="$(DESTDIR)" cmake --install build/$(DEMO) --prefix "$(PREFIX)" --component $$component; done

.PHONY: test
test: setup ## Tests that need no GPU, and checks, but for more-tests and more-checks
	@scripts/test

# Minutes for each allocator.
MINUTES ?= 1
.PHONY: explore
explore: setup ## Search and draw schedules of primitives and allocators, MINUTES (1) for each, and of known faults; fuzz readers
	@scripts/build host tests_explore warpheap_cli
	scripts/fuzz
	scripts/explore_faults
	WARPHEAP_EXPLORE=1 build/host/bin/tests_explore --gtest_brief=1
	build/host/bin/warpheap explore --allocator all --minutes $(MINUTES)
	build/host/bin/warpheap explore --allocator all --minutes $(MINUTES) --weak-memory

.PHONY: sanitizers
sanitizers: setup ## Tests and injected faults of the host backend under ThreadSanitizer and AddressSanitizer
	@scripts/test host-tsan host-asan

.PHONY: more-tests more-checks release-checks
more-tests: ## The tests that `make test` leaves out: the papers' allocators, what the tool measures
more-checks: ## The checks that `make test` leaves out: each header alone, other compilers, Python, the site
release-checks: ## What a release needs: archive, recipes, the single header, the Python package as it is published
more-tests more-checks release-checks: setup
	-@$(if $(findstring checks,$@),scripts/setup doxygen; scripts/setup chromium)
	@scripts/build host $(if $(findstring checks,$@),checks,more_tests)
	@ctest --preset host --label-regex '^$@$$' --parallel $(JOBS) --output-junit $(CURDIR)/build/results/$@.xml

.PHONY: check
check: setup ## The checks alone: layers, headers, format, documentation, CUDA compilation
	@scripts/build host checks
	@ctest --preset host --label-regex '^check$$'

.PHONY: report
report: ## Results as one page, build/report.html: RESULTS="FILES", or a small run on the host; BEFORE="FILES"
	@RESULTS="$(RESULTS)" BEFORE="$(BEFORE)" IMAGES="$(IMAGES)" scripts/make_report

.PHONY: registers
registers: ## What kernels take in registers and machine code, as tables (needs nvcc)
	@scripts/check_registers.py --markdown

.PHONY: gpu-build
gpu-build: setup ## Test programs and tool for a machine with a GPU, in build/gpu
	@scripts/gpu_build

.PHONY: single-header
single-header: ## The headers as one file: build/warpheap.hpp
	@scripts/amalgamate.py

# make release RELEASE='--draft --no-python …'; docs/guide/releasing.md
.PHONY: release
release: ## Tag this commit, and make what is published in build/release: archive, header, notes, recipes, Python package
	@scripts/release.py $(RELEASE)

.PHONY: site
site: setup ## The site: build/site/html/index.html
	@scripts/setup doxygen
	@scripts/site.py

.PHONY: format
format: ## Format every source in place
	@$(SOURCES) | xargs -r clang-format -i

.PHONY: tidy
tidy: setup ## clang-tidy on every source that the host build compiles
	@scripts/tidy.py

.PHONY: lint
lint: tidy check ## clang-tidy, and the checks

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf build
