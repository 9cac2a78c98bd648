#!/bin/sh
# Makes a host ready, once: the way out, Docker, the volume, and the service that starts the servers at each boot.
#
# ROLE is exit, data or ollama. The other variables are names and numbers, no secret; start.sh gets them too.
# ROOT is put before each path, for tests.
set -eu
: "${ROLE:?}" "${REGION:?}" "${ZONE:?}" "${ZONE_ID:?}" "${CIDR:?}"
root=${ROOT:-}
here=/opt/cragside/packaging/hosts
proxy=http://exit.$ZONE:3128
unproxied=localhost,127.0.0.1,169.254.169.254,ollama,.$ZONE

write() { # write FILE, from stdin
    mkdir -p "$(dirname "$root$1")"
    cat > "$root$1"
}

imds() {
    session=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token)
    curl -sf -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"
}

be_the_exit() {
    dnf install --quiet --assumeyes squid
    sed "s|@CIDR@|$CIDR|; s|@REGION@|$REGION|g; s|@ASSETS@|${ASSETS:?}|" "$root$here/squid.conf" | write /etc/squid/squid.conf
    systemctl enable --quiet squid
    systemctl restart squid
}

use_the_exit() {
    echo "proxy=$proxy" >> "$root/etc/dnf/dnf.conf"
    for unit in docker amazon-ssm-agent cragside-servers; do
        write "/etc/systemd/system/$unit.service.d/proxy.conf" <<END
[Service]
Environment=HTTP_PROXY=$proxy HTTPS_PROXY=$proxy NO_PROXY=$unproxied
Environment=http_proxy=$proxy https_proxy=$proxy no_proxy=$unproxied
END
    done
    # Builds and containers, such as Ollama, which fetches models.
    write /root/.docker/config.json <<END
{"proxies": {"default": {"httpProxy": "$proxy", "httpsProxy": "$proxy", "noProxy": "$unproxied"}}}
END
    systemctl daemon-reload
    systemctl restart amazon-ssm-agent || echo 'nobody can open a session: there is no agent of Systems Manager' >&2
}

# The volume outlives the host. Whatever has a file system is never formatted.
attach_the_volume() {
    aws ec2 wait volume-available --region "$REGION" --volume-ids "$VOLUME_ID"
    aws ec2 attach-volume --region "$REGION" --volume-id "$VOLUME_ID" --instance-id "$(imds instance-id)" \
        --device /dev/sdf > /dev/null
    device=$root/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol${VOLUME_ID#vol-}
    tries=0
    until [ -e "$device" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt "${TRIES:-60}" ] || { echo "the volume $VOLUME_ID did not appear" >&2; exit 1; }
        sleep 2
    done
    found=0
    blkid -p "$device" > /dev/null || found=$?
    case $found in
    0) ;;
    2) mkfs.xfs -q "$device" ;; # blkid found no signature of any kind
    *) echo "the volume $VOLUME_ID cannot be read" >&2; exit 1 ;;
    esac
    mkdir -p "$root/var/lib/cragside"
    echo "$device /var/lib/cragside xfs nofail,x-systemd.device-timeout=120 0 2" >> "$root/etc/fstab"
    mount "$root/var/lib/cragside"
    write /etc/docker/daemon.json <<END
{"data-root": "/var/lib/cragside/docker"}
END
    write /etc/systemd/system/docker.service.d/volume.conf <<END
[Unit]
RequiresMountsFor=/var/lib/cragside
END
}

start_docker() {
    # Images for graphics cards bring Docker along, and an agent of ECS that nobody needs here.
    command -v docker > /dev/null || dnf install --quiet --assumeyes docker
    systemctl disable --quiet --now ecs 2> /dev/null || true
    systemctl daemon-reload
    systemctl enable --quiet docker
    systemctl restart docker
}

start_servers_at_each_boot() {
    env | grep -E '^(ROLE|REGION|ZONE|ZONE_ID|SERVICES|MODELS|CONNECTIONS|[A-Z0-9_]+_SECRET)=' | write /etc/cragside/host.env
    write /etc/systemd/system/cragside-servers.service <<END
[Unit]
Description=cragside: servers in containers
Requires=docker.service
After=docker.service network-online.target
[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=/etc/cragside/host.env
ExecStart=/bin/sh $here/start.sh
Restart=on-failure
RestartSec=20
TimeoutStartSec=1800
[Install]
WantedBy=multi-user.target
END
    systemctl daemon-reload
    systemctl enable --quiet cragside-servers
    systemctl start cragside-servers
}

if [ "$ROLE" = exit ]; then be_the_exit; else use_the_exit; fi
if [ -n "${VOLUME_ID:-}" ]; then attach_the_volume; fi
start_docker
start_servers_at_each_boot
