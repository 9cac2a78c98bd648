#!/bin/sh
# Prints an interpreter of a supported version, or nothing: python3 if it fits, else the newest there is.
# `find_python.sh 3.12` accepts that version alone.
if [ -n "${1:-}" ]; then
    supported="import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')"
else
    supported='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
fi

fits() {
    "$1" -c "$supported" 2>/dev/null
}

if fits python3; then
    python3 -c 'import sys; print(sys.executable)'
    exit
fi
for minor in 13 12 11; do
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.$minor.*/bin/python; do
        if fits "$candidate"; then
            "$candidate" -c 'import sys; print(sys.executable)'
            exit
        fi
    done
done
