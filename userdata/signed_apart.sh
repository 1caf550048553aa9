# shellcheck shell=bash disable=SC2154
signed() {
    python3 -c '
# @sign
' "$region" "$@" <<<"$keys" | curl -fsSm 60 -K - "${@:2}"
}
