# Two commands: `make demo` shows what archfit does, `make test` checks everything.
PYTHON ?= python3
BIN := .venv/bin
SETTINGS := pyproject.toml constraints.txt
OUT ?= demo
# Where this is set, every process of a test would compile torch anew.
unexport PYTHONDONTWRITEBYTECODE
# Matrices are small: threads of one process would wait for each other, and two workers fill two cores.
export OPENBLAS_NUM_THREADS = 1

.PHONY: demo test test-slow soak bench gallery evidence clean

demo: .venv/.demo-ready
	$(BIN)/archfit advise --params 250k --vocab 257 --minutes-to-measure 2 --out $(OUT)
	@echo "Open $(OUT)/report.html in a browser."

test: .venv/.test-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

test-slow: .venv/.test-ready
	$(BIN)/pytest -n 2 --dist loadfile

# Kills, disk faults, races, mutated files, hostile requests: an hour or two; SOAK="--kills 10000 …"
# for more (docs/reliability.md). A short form is among the slow tests.
soak: .venv/.test-ready
	PYTHONPATH=benchmarks $(BIN)/python -m soak $(SOAK)

# By hand: data_memory.py and audit_weights.py (2 GB), train_quality.py and factorised_control.py
# (seven minutes each), serve_load.py (a minute), fit_coverage.py and mutation.py (an hour), train_gpu.py (where there is one).
bench: .venv/.test-ready
	for name in startup bounds exact data_throughput train_cpu sweep_overhead verification; do $(BIN)/python benchmarks/$$name.py || exit 1; done

gallery: .venv/.demo-ready
	$(BIN)/archfit audit --all --chart docs/audit-gallery.png >/dev/null
	$(BIN)/archfit audit --all --chart docs/audit-gallery.html | tail -1

# What is said about the shipped records: conclusions, tables of docs/evidence.md, docs/papers.md, figures.
evidence: .venv/.demo-ready
	$(BIN)/python docs/evidence/write.py
	$(BIN)/python docs/papers/write.py

# The site, in dist/site; a warning is an error.
docs: .venv/.test-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open dist/site/index.html in a browser."

# What the pages show of the program, run again.
sessions: .venv/.test-ready
	$(BIN)/python docs/site/sessions.py

# Wheel and source archive, in dist, as they would be uploaded.
dist: .venv/.test-ready
	rm -f dist/*.whl dist/*.tar.gz
	$(BIN)/python -m build --sdist --wheel --outdir dist
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

# Both stamps use one virtual environment; a change of settings installs again.
.venv/.demo-ready: $(SETTINGS) | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[train]'
	@touch $@

.venv/.test-ready: $(SETTINGS) | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@ .venv/.demo-ready

.venv/bin/python:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv dist $(OUT) .mypy_cache .ruff_cache .pytest_cache
