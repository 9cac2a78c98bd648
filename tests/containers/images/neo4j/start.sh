# Does with NEO4J_AUTH and the other variables what the start script of Neo4j's own image does.
set -eu
export NEO4J_HOME=/var/lib/neo4j NEO4J_CONF=/var/lib/neo4j/conf
{
    printf 'server.default_listen_address=0.0.0.0\nserver.directories.data=/data\nserver.directories.logs=/logs\n'
    # NEO4J_a_b__c=d is the setting a.b_c=d.
    env | sed -n 's/^NEO4J_\([a-z][A-Za-z_]*\)=/\1 /p' | while read -r name value; do
        echo "$(echo "$name" | sed 's/__/%/g; s/_/./g; s/%/_/g')=$value"
    done
} > "$NEO4J_CONF/neo4j.conf"
[ -d /data/databases ] || java -cp '/var/lib/neo4j/lib/*' org.neo4j.cli.AdminTool dbms set-initial-password "${NEO4J_AUTH#neo4j/}"
exec java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    --add-opens=java.base/java.nio=ALL-UNNAMED --add-opens=java.base/java.io=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED -cp '/var/lib/neo4j/lib/*' \
    org.neo4j.server.CommunityEntryPoint "--home-dir=$NEO4J_HOME" "--config-dir=$NEO4J_CONF"
