#!/bin/bash
# usage: tidegate-data s3://BUCKET/PREFIX [WAIT_S]
# For jobs: waits until the data set that the comment names (tidegate:data=s3://BUCKET/PREFIX) lies on
# this node's own disk, and prints its folder. Ends with 1 and the reason when it does not come, after
# WAIT_S seconds (3600 when left out) at the latest.
place=${1%/} place=${place#s3://} wait_s=${2:-3600}
if [[ $1 != s3://* || ! $wait_s =~ ^[0-9]{1,8}$ ]]; then
    echo "usage: tidegate-data s3://BUCKET/PREFIX [WAIT_S]" >&2
    exit 2
fi
name=${place//\//+}
folder=/scratch/tidegate-data/$name

fail() {
    echo "tidegate-data: s3://$place: $*" >&2
    exit 1
}

[[ -d /scratch/tidegate-data ]] || fail "this node has no disk of its own (/scratch), or loads no data sets"
until [[ -e $folder/complete ]]; do
    # First whether it is wanted: what failed before is tried again.
    if [[ ! -e /run/tidegate/data-sets/asked/$name ]]; then
        [[ ! -e $folder/complete ]] || break
        [[ ! -e $folder/failed ]] || fail "$(<"$folder/failed")"
        fail "not loaded here: no comment asks for it, or the cluster file's prefetch does not allow it"
    fi
    ((SECONDS < wait_s)) || fail "not complete after $wait_s s"
    sleep 1
done
echo "$folder/files"
