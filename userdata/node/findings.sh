# shellcheck shell=bash
# shellcheck disable=SC2034  # judge's answers are read by who calls it
# What a line of the kernel's log says about the GPUs and the switches between them, about AWS's own
# accelerators, disks, or EFA devices. Most errors of the switches (SXid) are told alone: links fail and
# come back when a driver starts, and where jobs suffer the GPUs have an Xid of their own (74, 144 to 150).

readonly ERRORS_DIR=${BASH_SOURCE[0]%/*}
# What a line that is judged holds, one a line, for grep -F.
readonly SIGNS=$'Xid (
NEURON_HW_ERR=
 error, dev 
 error on dev 
 timeout, 
 after reset failure
 after probe failure
 is down; will reset
 not ready; aborting
missing/failed member
Disk failure on
 been shut down
hutting down filesystem
Aborting journal
EXT4-fs error
Remounting filesystem read-only
efa 0
infiniband '
readonly DISKS=${RUN_DIR:-/run/tidegate}/disks
declare -A ERRORS=() KIND_OF=()
readonly -A KINDS=([store]=' (instance store)' [root]=' (disk of the system)' [efa]='' [any]='')
declare -a OF=() VERDICTS=() REMEDIES=() PATTERNS=()

read_errors() {
    local code known of verdict remedy pattern device='([a-z][-_a-z0-9]*)'
    while read -r code known; do
        [[ $code == '#'* ]] || ERRORS[$code]=$known
    done < <(cat "$ERRORS_DIR/xids" "$ERRORS_DIR/neuron_errors")
    while read -r of verdict remedy pattern; do
        [[ $of == '#'* ]] || {
            OF+=("$of") VERDICTS+=("$verdict") REMEDIES+=("$remedy") PATTERNS+=("^${pattern/\%/"$device"}")
        }
    done <"$ERRORS_DIR/device_errors"
    read_disks
}

read_disks() {
    local name kind
    [[ -e $DISKS ]] || return 0
    while read -r name kind; do
        KIND_OF[$name]=$kind
    done <"$DISKS"
}

# Which disk is an instance store, or what /scratch is made of them, and which is the system's: while
# all are there, for one that is gone has no more than a name.
note_disks() {
    local link root scratch
    [[ ! -e $DISKS ]] || return 0
    root=$(device_below /)
    scratch=$(device_below "$(readlink -f /scratch)")
    {
        for link in /dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*; do
            [[ ! -b $link ]] || note_disk "$(readlink -f "$link")" store
        done
        [[ -z $scratch || $scratch == "$root" ]] || note_disk "$scratch" store
        [[ -z $root ]] || note_disk "$root" root
    } | sort -u | put_file "$DISKS" 600
    read_disks
}

# device_below DIR: nothing where no disk is mounted there. findmnt says /dev/root of some images.
device_below() {
    local number
    number=$(mountpoint -d "$1" 2>/dev/null) || return 0
    [[ ! -e /sys/dev/block/$number ]] || readlink -f "/sys/dev/block/$number"
}

note_disk() {
    set_disk "${1##*/}"
    echo "$disk $2"
}

# Sets `disk`: of an NVMe disk its controller, by which the driver speaks of it, and not a part of it.
set_disk() {
    disk=$1
    [[ ! $1 =~ ^(nvme[0-9]+)n ]] || disk=${BASH_REMATCH[1]}
}

# judge LINE: what it is about in `subject`, what to do in `verdict` (ignore, tell or drain), the
# sentence in `finding`, and in `source` who says it (xid, neuron, nvme or efa). A line that is about
# none of them gets "ignore" and no subject.
judge() {
    local line=$1 remedy words said
    verdict=ignore subject='' finding='' source=xid
    # The driver's own word, and not what the kernel repeats of a file's name: at the line's beginning,
    # or behind who said it.
    if [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?NVRM:\ Xid\ \([^\)]*\):\ ([0-9]+) ]]; then
        subject="Xid ${BASH_REMATCH[3]}"
        read -r verdict remedy words <<<"${ERRORS[${BASH_REMATCH[3]}]:-tell none unknown to us}"
        [[ $verdict != says ]] || judge_by_words "$line"
        finding="$subject: $words"
        [[ $verdict != drain ]] || finding+=" (NVIDIA's remedy: $remedy)"
    elif [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?nvidia-nvswitch[0-9]*:\ SXid\ \([^\)]*\):\ ([0-9]+),\ (.*) ]]; then
        subject="SXid ${BASH_REMATCH[3]}" said=${BASH_REMATCH[4]//[\[\]\"=]/ }
        read -r verdict remedy words <<<"${ERRORS[${BASH_REMATCH[3]}]:-tell none ${said:0:160}}"
        finding="$subject of an NVSwitch: $words"
        [[ $verdict != drain ]] || finding+=" (NVIDIA's remedy: $remedy)"
    # The runtime has the driver write it, maybe behind the time. After a path or a quote it is a name
    # that somebody gave a file.
    elif [[ $line =~ ^[^/\'\"]*(^|\ )NEURON_HW_ERR=([A-Z_]+)(\ |$) ]]; then
        source=neuron subject="Neuron ${BASH_REMATCH[2]}"
        read -r verdict remedy words <<<"${ERRORS[${BASH_REMATCH[2]}]:-$(unlisted "$line")}"
        finding="$subject: $words"
        [[ ! $line =~ \ nd-id=([0-9]+) ]] || finding+=", device ${BASH_REMATCH[1]}"
        [[ $verdict != drain ]] || finding+=" (AWS's remedy: $remedy)"
    else
        judge_device "$line"
    fi
}

# judge_device LINE: by the rows of `device_errors`.
judge_device() {
    local said kind disk row driver
    # Who says it in front, as above; then the driver, and of EFA where its device is.
    [[ $1 =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?(blk_update_request:\ |nvme\ |infiniband\ |efa\ [0-9a-f:.]+\ )?(.*) ]]
    driver=${BASH_REMATCH[3]%% *}
    said=${BASH_REMATCH[4]}
    for ((row = 0; row < ${#PATTERNS[@]}; row++)); do
        [[ $said =~ ${PATTERNS[row]} ]] || continue
        set_disk "${BASH_REMATCH[1]}"
        kind=${KIND_OF[$disk]:-any}
        [[ $driver != infiniband && $driver != efa ]] || kind=efa
        [[ ${OF[row]} == "$kind" || ${OF[row]} == any && $kind != efa ]] || continue
        verdict=${VERDICTS[row]} subject="$disk ${PATTERNS[row]}" source=nvme
        [[ $kind != efa ]] || source=efa
        said=${said#"$disk: "}
        said=${said//[\[\]\"=]/ }
        finding="$disk${KINDS[$kind]}: ${said:0:160}"
        [[ $verdict != drain ]] || finding+=" (remedy: ${REMEDIES[row]})"
        return
    done
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
