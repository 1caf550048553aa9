# shellcheck shell=bash
# (g) The metadata service's owner rule: on a node only root and the user `tidegate` reach 169.254.169.254 and fd00:ec2::254.
# The service is another machine with these addresses; it answers every request.

readonly NODE=i-0123456789abcdef0 METADATA_IP=10.77.0.254
readonly ENDPOINTS=(http://169.254.169.254/latest/ 'http://[fd00:ec2::254]/latest/')

# Accept first, reject the rest: a packet without a known owner is rejected too.
readonly OWNER_RULE='
table inet tidegate_metadata
delete table inet tidegate_metadata
table inet tidegate_metadata {
    chain output {
        type filter hook output priority filter; policy accept;
        ip daddr 169.254.169.254 jump owners
        ip6 daddr fd00:ec2::254 jump owners
    }
    chain forward {
        type filter hook forward priority filter; policy accept;
        ip daddr 169.254.169.254 drop
        ip6 daddr fd00:ec2::254 drop
    }
    chain owners {
        meta skuid { 0, TIDEGATE_UID } accept
        reject
    }
}'

metadata_service_up() {
    machine metadata "$METADATA_IP"
    on metadata ip addr add 169.254.169.254/32 dev eth0
    on metadata ip -6 addr add fd00:ec2::254/64 dev eth0 nodad
    put metadata /srv/service.py <<'PY'
import http.server, socket, threading
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args): pass
class V6(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6
threading.Thread(target=V6(("fd00:ec2::254", 80), Answer).serve_forever).start()
http.server.ThreadingHTTPServer(("169.254.169.254", 80), Answer).serve_forever()
PY
    on metadata setsid python3 /srv/service.py >/dev/null 2>&1 </dev/null &
    disown
}

node_prepared() {
    gpu_node_prepare $NODE 10.77.1.1 a10g 4
    on $NODE ip route add 169.254.169.254/32 dev eth0
    on $NODE ip -6 addr add fd00:ec2::1/64 dev eth0 nodad
    on $NODE useradd -r tidegate
    on $NODE useradd -m user
    put $NODE /usr/local/bin/ask 755 <<ASK
#!/bin/sh
for url in ${ENDPOINTS[*]@Q}; do
    printf '%s ' "\$(\${CURL:-curl} -s -m 3 -o /dev/null -w '%{http_code}' "\$url" || echo "(curl exit \$?)")"
done
ASK
    install_setuid_copies
}

install_setuid_copies() {
    local curl
    curl=$(on $NODE readlink -f /usr/bin/curl)
    on $NODE install -m 4755 "$curl" /usr/local/bin/curl-of-root
    on $NODE install -m 4755 -o user "$curl" /usr/local/bin/curl-of-user
    on $NODE useradd -m other
}

seen() { # WHO COMMAND...
    local who=$1
    shift
    say "    $who: IPv4 and IPv6: $("$@" 2>&1 | tail -1)"
}

ask_all() {
    seen 'root' on $NODE ask
    seen 'user tidegate' as tidegate $NODE ask
    seen 'ordinary user' as user $NODE ask
    seen 'ordinary user, root in a user namespace of his own' as user $NODE unshare --user --map-root-user ask
    seen 'ordinary user, root in user and network namespaces of his own' as user $NODE unshare --user --map-root-user --net ask
    seen 'user other, by a set-uid program of an ordinary user' as other $NODE env CURL=curl-of-user ask
    seen 'ordinary user, by a set-uid program of root' as user $NODE env CURL=curl-of-root ask
}

jobs() {
    as user head sbatch --wait -D /shared -o /shared/batch.out --wrap ask >/dev/null
    seen 'batch script of a user' cat "$WORKDIR/shared/batch.out"
    seen 'srun step of a user' as user head srun -D /shared ask
    seen 'srun step of a user, root in a user namespace' as user head srun -D /shared unshare --user --map-root-user ask
    seen 'srun step of root' on head srun -D /shared ask
}

owner_rule() {
    put $NODE /etc/tidegate/metadata.nft <<<"${OWNER_RULE/TIDEGATE_UID/$(on $NODE id -u tidegate)}"
    on $NODE nft -f /etc/tidegate/metadata.nft
}

has_rule() { on $NODE nft list table inet tidegate_metadata >/dev/null 2>&1 && echo yes || echo no; }

head_up "$HEAD_GRES_CONF" <<<"$GPU_NODES"
on head useradd -m user
metadata_service_up
node_prepared
wait_for 10 on $NODE curl -s -m 1 -o /dev/null "${ENDPOINTS[1]}"
say '1. without the rule'
ask_all
say '2. the rule set before slurmd starts'
owner_rule
ask_all
slurmd_up $NODE 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu'
wait_for 20 node_is $NODE IDLE+DYNAMIC_NORM
jobs
say '3. after a restart of slurmd, and after loading the rule a second time'
slurmd_down $NODE
slurmd_up $NODE 'CPUs=48 RealMemory=180000 Gres=gpu:a10g:4 Feature=gpu'
wait_for 20 node_is $NODE IDLE+DYNAMIC_NORM
owner_rule
jobs
say '4. what removes it'
say "    rule there: $(has_rule)"
put $NODE /etc/nftables.conf <<<'flush ruleset'
on $NODE nft -f /etc/nftables.conf
say "    after loading an nftables.conf that begins with \"flush ruleset\", as Debian's does: $(has_rule)"
seen 'ordinary user then' as user $NODE ask
owner_rule
say "    an ordinary user who tries to remove it: $(as user $NODE /usr/sbin/nft delete table inet tidegate_metadata 2>&1 | head -1); rule there: $(has_rule)"
say "    the same as root of his own user namespace: $(as user $NODE unshare --user --map-root-user /usr/sbin/nft delete table inet tidegate_metadata 2>&1 | head -1); rule there: $(has_rule)"
