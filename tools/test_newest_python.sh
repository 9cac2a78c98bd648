#!/bin/sh
# Runs tests on the newest supported Python that is present, but for the one that they ran on already:
# test_newest_python.sh PYTHON-ALREADY-TESTED ARGUMENTS-OF-PYTEST
set -eu
version='import sys; print("%d.%d" % sys.version_info[:2])'
tested=$("$1" -c "$version")
shift
for minor in 13 12 11; do
    [ "3.$minor" != "$tested" ] || continue
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python; do
        [ "$("$candidate" -c "$version" 2>/dev/null || true)" = "3.$minor" ] || continue
        echo "Tests on Python 3.$minor"
        UV_PROJECT_ENVIRONMENT=".venv-3.$minor" exec "$UV" run --frozen --python "$candidate" pytest "$@"
    done
done
echo "There is no other Python 3.11, 3.12 or 3.13, so nothing runs on a second one." >&2
[ "${CI:-}" != true ]
