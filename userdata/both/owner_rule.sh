# shellcheck shell=bash
# needs: packages identity
# time_limit_s: 20
# Only the users in METADATA_USERS reach the metadata service. Any job that did could take the
# instance's role, with it the Munge key, and with that be root on the cluster. Before every
# Slurm daemon, so that no job is ever ahead of it.
#
# A unit of its own, which a restart of the image's firewall restarts as well: that empties the
# tables of everybody.

readonly RULES=/etc/tidegate/owner_rule.nft
readonly UNIT=/etc/systemd/system/tidegate-owner-rule.service

# Only packets that open a connection are asked for their owner. The last packets of a closed
# one have none: were they refused, the metadata service would keep the connection half open
# and the next one from the same port would hang. The first two lines make a second run start
# from nothing.
rules() {
    cat <<EOF_NFT
table inet tidegate {}
delete table inet tidegate
table inet tidegate {
    chain output {
        type filter hook output priority 0; policy accept;
        ip daddr 169.254.169.254 goto owners
        ip6 daddr fd00:ec2::254 goto owners
    }
    chain owners {
        tcp flags & (syn | ack) != syn accept
        meta skuid { ${METADATA_USERS// /, } } accept
        reject
    }
    # Containers with a bridge of their own.
    chain forward {
        type filter hook forward priority 0; policy accept;
        ip daddr 169.254.169.254 drop
        ip6 daddr fd00:ec2::254 drop
    }
}
EOF_NFT
}

check() {
    has_file "$RULES" "$(rules)" && systemctl is-active --quiet tidegate-owner-rule &&
        nft list table inet tidegate >/dev/null 2>&1
}

apply() {
    rules | put_file "$RULES" 644
    put_file "$UNIT" 644 <<EOF_UNIT
[Unit]
Description=Tidegate: only some users reach the metadata service
PartOf=nftables.service firewalld.service ufw.service iptables.service
After=nftables.service firewalld.service ufw.service iptables.service
Before=slurmctld.service slurmd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=$(command -v nft) -f $RULES
EOF_UNIT
    systemctl daemon-reload
    systemctl restart tidegate-owner-rule
}
