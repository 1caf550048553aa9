# shellcheck shell=bash
# shellcheck disable=SC2034  # judge's answers are read by who calls it
# What a line of the kernel's log says about the GPUs and the switches between them. Errors of the
# switches (SXid) are told alone: links fail and come back when a driver starts, and where jobs
# suffer the GPUs have an Xid of their own (74, 144 to 150).

readonly XIDS_FILE=${BASH_SOURCE[0]%/*}/xids
declare -A XIDS=()

read_xids() {
    local code known
    while read -r code known; do
        [[ $code == '#'* ]] || XIDS[$code]=$known
    done <"$XIDS_FILE"
}

# judge LINE: what it is about in `subject`, what to do in `verdict` (ignore, tell or drain), the
# sentence in `finding`. A line that is about neither gets "ignore" and no subject.
judge() {
    local line=$1 remedy words
    verdict=ignore subject='' finding=''
    # The driver's own word, and not what the kernel repeats of a file's name: at the line's beginning,
    # or behind who said it.
    if [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?NVRM:\ Xid\ \([^\)]*\):\ ([0-9]+) ]]; then
        subject="Xid ${BASH_REMATCH[3]}"
        read -r verdict remedy words <<<"${XIDS[${BASH_REMATCH[3]}]:-tell none unknown to us}"
        [[ $verdict != says ]] || judge_by_words "$line"
        finding="$subject: $words"
        [[ $verdict != drain ]] || finding+=" (NVIDIA's remedy: $remedy)"
    elif [[ $line =~ nvidia-nvswitch[0-9]*:\ SXid\ \([^\)]*\):\ ([0-9]+),\ (.*) ]]; then
        verdict=tell subject="SXid ${BASH_REMATCH[1]}"
        finding="$subject of an NVSwitch: ${BASH_REMATCH[2]}"
    fi
}

# The lines of NVLink 5 bear their severity; Xid 154 says what the driver wants, which may be nothing.
judge_by_words() {
    verdict=tell
    if [[ $1 =~ recovery\ action\ changed\ from\ .*\ to\ [^\(]*\(([^\)]*)\) ]]; then
        words="the driver asks for: ${BASH_REMATCH[1]}"
        [[ ${BASH_REMATCH[1]} == None ]] || verdict=drain remedy=${BASH_REMATCH[1],,}
    elif [[ $1 == *' Fatal '* ]]; then
        verdict=drain
    fi
}
