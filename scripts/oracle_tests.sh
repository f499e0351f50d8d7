#!/bin/sh
# Runs tests/NAME with pytest in an environment of its own, .venv-NAME, made from
# tests/NAME/requirements.txt and made anew when that file changes.
# usage: scripts/oracle_tests.sh NAME [pytest arguments]
set -eu
cd "$(dirname "$0")/.."
name=$1
shift
venv=.venv-$name
if ! cmp -s "tests/$name/requirements.txt" "$venv/requirements.txt"; then
    "${PYTHON:-python3}" -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "tests/$name/requirements.txt"
    cp "tests/$name/requirements.txt" "$venv/requirements.txt"
fi
exec "$venv/bin/python" -m pytest -q "tests/$name" "$@"
