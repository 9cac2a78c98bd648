#!/bin/sh
# Runs stages of `make check`, two at a time: check.sh STAGE... Prints the output of each stage when it ends, then the
# time of each stage and the ten slowest tests. Ends with 1 if a stage failed or did not run. Logs stay in build/check.
set -u
folder=build/check/$$
rm -rf "$folder"
mkdir -p "$folder" || exit 1
printf '%s\n' "$@" | xargs -n 1 -P 2 sh tools/stage.sh "$folder"
failed=$?
echo "Stages:"
for stage in "$@"; do
    cat "$folder/$stage.time" 2>/dev/null || printf '%-14s NOT RUN\n' "$stage"
done
echo "The ten slowest tests:"
grep -hE '^[0-9.]+s (call|setup|teardown) ' "$folder"/*.log | sort -rn | head -n 10
[ "$failed" -eq 0 ]
