# shellcheck shell=bash
# shellcheck disable=SC2034  # judge's answers are read by who calls it
# What a line of the kernel's log says about the GPUs and the switches between them, or about AWS's
# own accelerators. Errors of the switches (SXid) are told alone: links fail and come back when a
# driver starts, and where jobs suffer the GPUs have an Xid of their own (74, 144 to 150).

readonly ERRORS_DIR=${BASH_SOURCE[0]%/*}
# What a line that is judged holds, one a line, for grep -F.
readonly SIGNS=$'Xid (\nNEURON_HW_ERR='
declare -A ERRORS=()

read_errors() {
    local code known
    while read -r code known; do
        [[ $code == '#'* ]] || ERRORS[$code]=$known
    done < <(cat "$ERRORS_DIR/xids" "$ERRORS_DIR/neuron_errors")
}

# judge LINE: what it is about in `subject`, what to do in `verdict` (ignore, tell or drain), the
# sentence in `finding`, and in `source` who says it (xid or neuron). A line that is about none of
# them gets "ignore" and no subject.
judge() {
    local line=$1 remedy words
    verdict=ignore subject='' finding='' source=xid
    # The driver's own word, and not what the kernel repeats of a file's name: at the line's beginning,
    # or behind who said it.
    if [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?NVRM:\ Xid\ \([^\)]*\):\ ([0-9]+) ]]; then
        subject="Xid ${BASH_REMATCH[3]}"
        read -r verdict remedy words <<<"${ERRORS[${BASH_REMATCH[3]}]:-tell none unknown to us}"
        [[ $verdict != says ]] || judge_by_words "$line"
        finding="$subject: $words"
        [[ $verdict != drain ]] || finding+=" (NVIDIA's remedy: $remedy)"
    elif [[ $line =~ nvidia-nvswitch[0-9]*:\ SXid\ \([^\)]*\):\ ([0-9]+),\ (.*) ]]; then
        verdict=tell subject="SXid ${BASH_REMATCH[1]}"
        finding="$subject of an NVSwitch: ${BASH_REMATCH[2]}"
    # The runtime has the driver write it, maybe behind the time. After a path or a quote it is a name
    # that somebody gave a file.
    elif [[ $line =~ ^[^/\'\"]*(^|\ )NEURON_HW_ERR=([A-Z_]+)(\ |$) ]]; then
        source=neuron subject="Neuron ${BASH_REMATCH[2]}"
        read -r verdict remedy words <<<"${ERRORS[${BASH_REMATCH[2]}]:-$(unlisted "$line")}"
        finding="$subject: $words"
        [[ ! $line =~ \ nd-id=([0-9]+) ]] || finding+=", device ${BASH_REMATCH[1]}"
        [[ $verdict != drain ]] || finding+=" (AWS's remedy: $remedy)"
    fi
}

# unlisted LINE: what the line itself asks for.
unlisted() {
    case $1 in
        *' action=TERMINATE'*) echo drain replace unknown to us ;;
        *' action='*RE[BL]O*) echo drain reboot unknown to us ;;
        *) echo tell none unknown to us ;;
    esac
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
