#!/bin/sh
# Starts the servers of a host, at each boot: gives it its names, fetches passwords, and brings up SERVICES of
# docker-compose.local.yml.
#
# Passwords come from Secrets Manager and stay in memory: no template, user data, argument or file on a disk has them,
# but the containers that Docker keeps, and one that no secret says, which is on the volume. ROOT is put before each path, for tests.
set -eu
umask 077
: "${ROLE:?}" "${REGION:?}" "${ZONE:?}" "${ZONE_ID:?}"
root=${ROOT:-}
memory=$root/run/cragside # a file system in memory
volume=$root/var/lib/cragside
mkdir -p "$memory"

imds() {
    session=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
    curl -sf -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"
}

secret() {
    aws secretsmanager get-secret-value --region "$REGION" --secret-id "$1" --query SecretString --output text
}

# Functions read a whole URI. Secrets Manager generates a password only, from which the first start makes the URI.
postgres_password() {
    said=$(secret "$POSTGRES_URI_SECRET")
    case $said in
    postgresql://cragside:*@* | postgres://cragside:*@*)
        said=${said#*://cragside:}
        said=$(decoded "${said%%@*}")
        ;;
    *[!A-Za-z0-9]* | "")
        echo "The secret of PostgreSQL's URI names another role. It is left as it is." >&2
        said=$(kept_password)
        ;;
    *)
        printf 'postgresql://cragside:%s@postgres.%s:5432/cragside' "$said" "$ZONE" > "$memory/uri"
        aws secretsmanager put-secret-value --region "$REGION" --secret-id "$POSTGRES_URI_SECRET" \
            --secret-string "file://$memory/uri" > /dev/null
        rm -f "$memory/uri"
        ;;
    esac
    printf %s "$said"
}

# In a URI, `%40` is an `@`. Amazon Linux has Python, in which `dnf` and `aws` are written.
# The shell would drop NUL and line breaks at the end, so that the server got another password than its clients send.
decoded() {
    printf %s "$1" | python3 -c '
import sys, urllib.parse
password = urllib.parse.unquote(sys.stdin.read(), errors="replace")
if not password.isprintable() or "\ufffd" in password:
    sys.exit("The password in the secret of PostgreSQL has a character that cannot be printed. Choose another.")
print(password, end="")'
}

# The same at each boot: PostgreSQL takes the one of its first start, and containers that are told another are made anew.
kept_password() {
    kept=$volume/postgres-password
    if [ ! -s "$kept" ]; then
        random > "$kept.new"
        mv "$kept.new" "$kept"
    fi
    cat "$kept"
}

random() {
    od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

# Compose takes what is between single quotes as it is, `$` and `#` too. It cannot be told of a backslash before a quote.
quoted() {
    case $1 in
    *\\* | *"
"*)
        echo "A password has a backslash or a line break, which the servers cannot be told: change it." >&2
        return 1
        ;;
    esac
    printf "'%s'" "$(printf %s "$1" | sed "s/'/\\\\'/g")"
}

# The file refuses to start without any of them, though a host needs only its own.
write_environment() {
    postgres=unused neo4j=unused
    if [ -n "${POSTGRES_URI_SECRET:-}" ]; then postgres=$(postgres_password); fi
    if [ -n "${NEO4J_PASSWORD_SECRET:-}" ]; then neo4j=$(secret "$NEO4J_PASSWORD_SECRET"); fi
    postgres=$(quoted "$postgres")
    neo4j=$(quoted "$neo4j")
    cat > "$memory/env" <<END
CRAGSIDE_API_TOKEN=unused
CRAGSIDE_POSTGRES_PASSWORD=$postgres
CRAGSIDE_POSTGRES_CONNECTIONS=${CONNECTIONS:-100}
CRAGSIDE_NEO4J_PASSWORD=$neo4j
CRAGSIDE_SEARXNG_SECRET=$(random)
END
}

# A host is found by the name of each of its servers, whatever its address is.
take_names() {
    address=$(imds local-ipv4)
    changes=
    for name in $1; do
        record="{\"Name\":\"$name.$ZONE\",\"Type\":\"A\",\"TTL\":30,\"ResourceRecords\":[{\"Value\":\"$address\"}]}"
        changes="$changes${changes:+,}{\"Action\":\"UPSERT\",\"ResourceRecordSet\":$record}"
    done
    aws route53 change-resource-record-sets --hosted-zone-id "$ZONE_ID" --change-batch "{\"Changes\":[$changes]}" > /dev/null
}

# Compose comes as an image, because Amazon Linux has no package of it.
compose() {
    config=$root/root/.docker
    mkdir -p "$config"
    docker run --rm --volume /var/run/docker.sock:/var/run/docker.sock --volume /opt/cragside:/opt/cragside:ro \
        --volume "$memory:/run/cragside:ro" --volume "$config:/root/.docker:ro" --workdir /opt/cragside \
        docker:28.5.1-cli docker compose --env-file /run/cragside/env \
        --file docker-compose.local.yml --file packaging/hosts/compose.yml --profile gpu "$@"
}

# Somebody may have made the volume larger.
if [ "$ROLE" = data ]; then
    xfs_growfs "$volume" > /dev/null || echo "The file system of $volume keeps its size." >&2
fi
services=${SERVICES:-}
names=$services
case $ROLE in
exit) names="exit $services" ;;
ollama) names=ollama ;;
esac
take_names "$names"
write_environment
if [ -n "$services" ]; then
    # shellcheck disable=SC2086 # these are several words
    compose up --detach --no-deps --wait $services
fi
if [ -n "${MODELS:-}" ]; then
    compose up --no-deps --no-log-prefix models
fi
