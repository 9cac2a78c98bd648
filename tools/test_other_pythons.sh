#!/bin/sh
# Runs the unit tests on every other supported Python that is present: test_other_pythons.sh PYTHON-ALREADY-TESTED.
set -eu
version='import sys; print("%d.%d" % sys.version_info[:2])'
tested=$("$1" -c "$version")
for minor in 11 12 13; do
    [ "3.$minor" != "$tested" ] || continue
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python; do
        [ "$("$candidate" -c "$version" 2>/dev/null || true)" = "3.$minor" ] || continue
        echo "Unit tests on Python 3.$minor"
        UV_PROJECT_ENVIRONMENT=".venv-3.$minor" "$UV" run --frozen --python "$candidate" pytest -n auto --dist loadfile tests/unit
        break
    done
done
