#!/bin/sh
# Makes the database `cragside` at the first start, then runs PostgreSQL.
#
# The role `cragside` owns the database and has the password POSTGRES_PASSWORD. The superuser `postgres` is reached only
# from inside: `docker compose exec postgres psql --username postgres cragside`. Arguments are passed on to PostgreSQL.
set -eu

settings='-c unix_socket_directories=/tmp -c shared_preload_libraries=age'

if [ ! -s "$PGDATA/PG_VERSION" ]; then
    : "${POSTGRES_PASSWORD:?is not set: it becomes the password of the role cragside}"
    # A start that was interrupted begins again.
    making="$PGDATA.making"
    rm -rf "$making"
    initdb --pgdata "$making" --username postgres --auth-local peer --auth-host scram-sha-256 \
        --encoding UTF8 --locale C.UTF-8 --data-checksums --no-instructions
    echo 'host all all all scram-sha-256' >> "$making/pg_hba.conf"
    pg_ctl --silent --wait --pgdata "$making" --options "$settings -c listen_addresses=" start
    psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username postgres postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE cragside LOGIN PASSWORD :'password';
CREATE DATABASE cragside OWNER cragside;
\connect cragside
CREATE EXTENSION vector;
CREATE EXTENSION age;
GRANT USAGE ON SCHEMA ag_catalog TO cragside;
GRANT CREATE ON SCHEMA public TO cragside;
ALTER ROLE cragside SET search_path = public;
SQL
    pg_ctl --silent --wait --pgdata "$making" --mode fast stop
    mv "$making" "$PGDATA"
fi
unset POSTGRES_PASSWORD
# shellcheck disable=SC2086 # these are several words
exec postgres -D "$PGDATA" $settings -c 'listen_addresses=*' "$@"
