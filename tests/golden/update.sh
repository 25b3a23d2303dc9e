#!/bin/sh
# Rewrites the golden files with what the program prints now: tests/golden/update.sh [BIN-FOLDER]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec /usr/bin/python3 "$here/run.py" --bin "${1:-$here/../../build/dev/bin}" --update "$here"/*.txt
