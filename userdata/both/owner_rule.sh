# shellcheck shell=bash
# needs: packages identity
# time_limit_s: 120
# Only the users in METADATA_USERS reach the metadata service. Any job that did could take the
# instance's role, with it the Munge key, and with that be root on the cluster. Before every
# Slurm daemon, so that no job is ever ahead of it.
#
# And only root reaches the proxy of EFS's mount helper: it listens on a port of this machine, asks
# nobody and has the instance's role, so who opens a connection there is whoever they say, root on
# the head among them. Sources: efs-utils, proxy/src/controller.rs (whom it accepts) and
# dist/efs-utils.conf (its ports).
#
# The metadata service is refused twice: by the firewall, and by routing rules that know no way there for anybody else. A
# restart of the image's firewall empties the tables of everybody, then restarts this unit; in
# between the routing rules are there. systemd-networkd, which removes the routing rules of
# others when it starts, leaves those that say that they are the kernel's (its
# networkd-routing-policy-rule.c).
#
# At later boots the unit does it before there is any network: what people left to start with the machine
# (crontab's @reboot, a unit of their own) would else be ahead of this stage.

readonly RULES=/etc/tidegate/owner_rule.nft SCRIPT=/etc/tidegate/owner_rule.sh
readonly UNIT=/etc/systemd/system/tidegate-owner-rule.service
readonly WANTED=/etc/systemd/system/multi-user.target.wants/${UNIT##*/}
readonly PROXY_PORTS=20049-21049

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
        # The kernel's own connection for the mount may have no owner, which no rule on owners
        # fits; a user's has one. By a reset: an ICMP message that comes while connect() holds the
        # socket is lost, and who asks (the health gate does) waits a second for the next try.
        ip daddr 127.0.0.0/8 tcp dport $PROXY_PORTS tcp flags & (syn | ack) == syn meta skuid != 0 reject with tcp reset
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

# A rule that is there already stays ("File exists"), so that no moment is without. `iif lo`: what
# this machine sends itself; what it forwards counts as root's.
script() {
    local family address user id
    echo '#!/bin/sh'
    for family in 4 6; do
        address=$([[ $family == 4 ]] && echo 169.254.169.254 || echo fd00:ec2::254)
        echo "ip -$family -force -batch - 2>/dev/null <<'END'"
        for user in $METADATA_USERS; do
            id=$(id -u "$user")
            echo "rule add pref 90 to $address iif lo uidrange $id-$id lookup main protocol kernel"
        done
        echo "rule add pref 91 to $address prohibit protocol kernel"
        echo END
    done
    echo "exec $(command -v nft) -f $RULES"
}

has_routes() {
    [[ $(ip rule show pref 91) == *prohibit* ]] &&
        [[ ! -e /proc/net/if_inet6 || $(ip -6 rule show pref 91) == *prohibit* ]]
}

# Firewalls come before network-pre.target, networks after it (systemd.special(7)).
unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: only some users reach the metadata service
DefaultDependencies=no
PartOf=nftables.service firewalld.service ufw.service iptables.service
After=local-fs.target nftables.service firewalld.service ufw.service iptables.service
Wants=network-pre.target
Before=network-pre.target slurmctld.service slurmd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh $SCRIPT
[Install]
WantedBy=multi-user.target
EOF_UNIT
}

check() {
    has_file "$RULES" rules && has_file "$SCRIPT" script && has_routes &&
        has_file "$UNIT" unit && [[ -L $WANTED ]] &&
        systemctl is-active --quiet tidegate-owner-rule && nft list table inet tidegate >/dev/null 2>&1
}

apply() {
    rules | put_file "$RULES" 644
    script | put_file "$SCRIPT" 755
    unit | put_file "$UNIT" 644
    systemctl enable tidegate-owner-rule
    systemctl restart tidegate-owner-rule
}
