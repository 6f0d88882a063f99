# The one entry for every task. `make help` lists them.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: build
build:
	$(PYTHON) setup.py build_clib build_ext --inplace
