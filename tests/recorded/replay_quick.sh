#!/usr/bin/env bash
# Replay the recorded command lines that take seconds, with the virtual environment of `make test`.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
python="$(git rev-parse --path-format=absolute --git-common-dir)/../.venv/bin/python"
PYTHONPATH="$PWD/src" exec "$python" -m pytest -q -x -p no:cacheprovider tests/recorded \
  -k "not train and not sweep and not report and not advise"
