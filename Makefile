# The front door. `make help` says what there is.

# Compilations at once: as many as there are processors and memory for (a source that includes torch takes 2 GB).
JOBS ?= $(shell awk -v cpus="$$(nproc)" '/MemTotal/ {m = int($$2 / 2000000); print m < 1 ? 1 : m < cpus ? m : cpus}' /proc/meminfo)
# Where `make install` puts things.
PREFIX ?= /usr/local

.PHONY: help demo test sanitize calibrate validate bench install
.DEFAULT_GOAL := help

help:  ## these lines
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo:  ## ResNet-50 and GPT-2 on 1 to 1,024 devices, predicted: needs neither MPI nor libtorch
	tools/setup.sh demo
	cmake --preset demo
	cmake --build --preset demo --target sibyl -j $(JOBS)
	tools/demo.sh build/demo/bin/sibyl

test:  ## builds everything and runs every test
	tools/setup.sh all
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	$(MAKE) --no-print-directory sanitize
	ctest --preset dev

sanitize:  ## tests and a minute of fuzzing under the address and undefined-behaviour sanitizers
	tools/setup.sh all
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan
	tests/fuzz/run.sh 60 build/asan

calibrate: release  ## measures this machine into calibration.json
	build/release/bin/sibyl calibrate all -o calibration.json

validate: release  ## predicts and trains for real on this machine, and compares: hours; tools/validate.sh makes parts
	tools/validate.sh build/release/bin out

bench: release  ## how fast Sibyl itself is
	cmake --preset release -DSIBYL_BENCH=ON
	cmake --build --preset release -j $(JOBS)
	build/release/bin/sibyl_bench
	build/release/bin/search_report
	build/release/bin/fabric_bench
	build/release/bin/closed_form_report
	@# There where Qt is.
	for desktop in gui_bench canvas_bench; do \
	  test ! -x build/release/bin/$$desktop || QT_QPA_PLATFORM=offscreen build/release/bin/$$desktop || exit; \
	done

install: release  ## the programs and the libraries, under PREFIX
	cmake --install build/release --prefix $(PREFIX)

.PHONY: release
release:
	tools/setup.sh all
	cmake --preset release
	cmake --build --preset release -j $(JOBS)
