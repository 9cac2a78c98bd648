#!/bin/sh
# Installs uv for this checkout: install_uv.sh PYTHON FOLDER. The version and the hashes are in uv.txt beside this. Works without the venv module (Debian splits it off).
set -eu
python=$1 folder=$2
pinned="--require-hashes --requirement $(dirname "$0")/uv.txt"
if "$python" -m venv "$folder" >/dev/null 2>&1; then
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $pinned
    exit
fi
rm -rf "$folder"
if "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet --disable-pip-version-check --target "$folder/lib" $pinned
    mkdir -p "$folder/bin"
    ln -s ../lib/bin/uv "$folder/bin/uv"
elif command -v uv >/dev/null 2>&1; then
    mkdir -p "$folder/bin"
    ln -s "$(command -v uv)" "$folder/bin/uv"
else
    echo "cragside needs uv, Python's venv module or pip to set itself up (Debian: apt install python3-venv)." >&2
    exit 1
fi
