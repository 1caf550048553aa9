# shellcheck shell=bash disable=SC2153
# needs: identity shape
# only_with: TOPOLOGY
# time_limit_s: 60
# Where this node is in EC2's network, as slurmd tells it to slurmctld (TOPOLOGY: the instance types
# that EC2 tells the place of; "-" for none of them, "" where Slurm knows no topology). slurmctld makes
# the switches of a path that it does not know, and takes no node whose path it cannot use: so a leaf is
# named as no switch is, and a node of which EC2 tells nothing is in its zone all the same.

readonly TRIES=4 LONGEST_PAUSE_S=4

check() {
    [[ -n ${PLACE:-} ]]
}

apply() {
    local zone path=''
    zone=$(imds placement/availability-zone)
    if [[ " $TOPOLOGY " == *" $INSTANCE_TYPE "* ]]; then
        path=$(path_of_instance) || path=''
        [[ -n $path ]] || echo "EC2 does not tell where this instance is; its zone has to do"
    fi
    put_fact PLACE "default:all:$zone:${path:-$zone-unplaced}"
}

# path_of_instance: its network nodes from the top, and a leaf below the lowest. EC2 has no answer yet
# for an instance that it does not know to be running, and none for who asks too often: so it is asked
# again, each node after a pause of its own.
path_of_instance() {
    local try
    for ((try = 1; ; try++)); do
        if described | path_in; then
            return 0
        fi
        ((try < TRIES)) || return 1
        sleep "$((RANDOM % LONGEST_PAUSE_S)).$((RANDOM % 10))"
    done
}

described() {
    signed ec2 -m 10 -d "Action=DescribeInstanceTopology&Version=2016-11-15&InstanceId.1=$INSTANCE_ID" \
        "$(endpoint ec2)/" | tr -d ' \t\r\n'
}

# path_in <XML: nothing, and no success, where it names no network node. The instances of an UltraServer
# share its Capacity Block, which is closer than any switch.
path_in() {
    local xml nodes block
    xml=$(cat)
    nodes=$(grep -oE '<networkNodeSet>.*</networkNodeSet>' <<<"$xml" | items item nn) || return
    block=$(items capacityBlockId cb <<<"$xml") || block=${nodes##*:}-hosts
    echo "$nodes:$block"
}

# items TAG PREFIX <XML: the ids in such tags, joined by colons; no success where there is none.
items() {
    grep -oE "<$1>$2-[0-9a-z]+</$1>" | grep -oE "$2-[0-9a-z]+" | paste -sd:
}
