# shellcheck shell=bash
# Only the users in METADATA_USERS reach the metadata service. Any job that did could take the
# instance's role, with it the Munge key, and with that be root on the cluster. Before every
# Slurm daemon, so that no job is ever ahead of it.
#
# Only packets that open a connection are asked for their owner. The last packets of a closed
# one have none: were they refused, the metadata service would keep the connection half open
# and the next one from the same port would hang.

stage_owner_rule() {
    local users=${METADATA_USERS// /, }
    # The first two lines make a second run start from nothing.
    nft -f - <<EOF_NFT
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
        meta skuid { $users } accept
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
