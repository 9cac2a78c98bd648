#!/bin/sh
# Runs one stage of `make check`: stage.sh FOLDER STAGE. Says at once that it begins; prints its output when it ends.
set -u
folder=$1 stage=$2
log=$folder/$stage.log
echo "$stage begins; its output goes to $log"
began=$(date +%s)
result=passed
make --no-print-directory "$stage" >"$log" 2>&1 || result=FAILED
printf '%-14s %6d s  %s\n' "$stage" $(($(date +%s) - began)) "$result" >"$folder/$stage.time"
echo "==== $stage $result"
cat "$log"
[ "$result" = passed ]
