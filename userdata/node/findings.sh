# shellcheck shell=bash
# shellcheck disable=SC2034  # judge's answers are read by who calls it
# What a line of the kernel's log says about the GPUs and the switches between them, about AWS's own
# accelerators, disks, or EFA devices. Most errors of the switches (SXid) are told alone: links fail and
# come back when a driver starts, and where jobs suffer the GPUs have an Xid of their own (74, 144 to 150).

readonly FINDINGS=${FINDINGS:-${BASH_SOURCE[0]%/*}/findings}
# What gpu-reset.sh writes there: what a reset mends and was said before, it has mended.
readonly GPUS_RESET='tidegate has reset the GPUs'
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
infiniband 
'"$GPUS_RESET"
# What a reboot is for that a test is to follow: see check_diag.
readonly TO_TEST=${TO_TEST:-/var/lib/tidegate/to-test}
readonly DISKS=${RUN_DIR:-/run/tidegate}/disks
declare -A ACTIONS=() SEVERITIES=() WORDS=() OWN=() KIND_OF=()
readonly -A KINDS=([store]=' (instance store)' [root]=' (disk of the system)' [efa]='' [any]='')
declare -a OF=() KEYS=() PATTERNS=() CHECKS=()

# By the key of a finding, `xid 79`, or `ecc` of a check, whose words are when it is asked.
read_findings() {
    local source name action severity words key device='([a-z][-_a-z0-9]*)'
    while read -r source name action severity words; do
        key="$source $name"
        case $source in
            gpu | node) key=$name CHECKS+=("$source $name ,$words,") ;;
            store | root | any | efa) OF+=("$source") KEYS+=("$key") PATTERNS+=("^${words/\%/"$device"}") ;;
        esac
        ACTIONS[$key]=$action SEVERITIES[$key]=$severity WORDS[$key]=$words
    done <"$FINDINGS"
    read_own_actions
    read_disks
}

# What the cluster file says of some of them, a line each.
read_own_actions() {
    local line key
    while IFS= read -r line; do
        [[ -n $line ]] || continue
        key=${line% *}
        ACTIONS[$key]=${line##* } OWN[$key]="the cluster file's "
        WORDS[$key]=${WORDS[$key]:-see its catalog}
        [[ ${SEVERITIES[$key]:-} == fatal ]] || SEVERITIES[$key]=degraded
    done <<<"${HEALTH_ACTIONS:-}"
}

# checks_of WHEN: those of the boot, of every five minutes (run) or of a job's end, in their order.
checks_of() {
    local row of check asked
    for row in "${CHECKS[@]}"; do
        read -r of check asked <<<"$row"
        [[ $asked == *,$1,* && ${ACTIONS[$check]} != ignore ]] || continue
        [[ $of == node ]] || ((GPUS > 0)) || continue
        echo "$check"
    done
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
    local line=$1 action severity words whose said
    verdict=ignore subject='' finding='' source=xid
    # The driver's own word, and not what the kernel repeats of a file's name: at the line's beginning,
    # or behind who said it.
    if [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?NVRM:\ Xid\ \([^\)]*\):\ ([0-9]+) ]]; then
        subject="Xid ${BASH_REMATCH[3]}"
        look_up xid "${BASH_REMATCH[3]}" "NVIDIA's "
        [[ $action != says* ]] || judge_by_words "$line"
        conclude "$subject: $words"
    elif [[ $line =~ ^(\[[\ 0-9.]+\]\ [^\ ]+\ (kernel:\ )?)?nvidia-nvswitch[0-9]*:\ SXid\ \([^\)]*\):\ ([0-9]+),\ (.*) ]]; then
        subject="SXid ${BASH_REMATCH[3]}" said=${BASH_REMATCH[4]//[\[\]\"=]/ }
        look_up sxid "${BASH_REMATCH[3]}" "NVIDIA's "
        [[ $words != - ]] || words=${said:0:160}
        conclude "$subject of an NVSwitch: $words"
    # The runtime has the driver write it, maybe behind the time. After a path or a quote it is a name
    # that somebody gave a file.
    elif [[ $line =~ ^[^/\'\"]*(^|\ )NEURON_HW_ERR=([A-Z_]+)(\ |$) ]]; then
        source=neuron subject="Neuron ${BASH_REMATCH[2]}"
        look_up neuron "${BASH_REMATCH[2]}" "AWS's "
        [[ $action != says ]] || judge_by_action "$line"
        said="$subject: $words"
        [[ ! $line =~ \ nd-id=([0-9]+) ]] || said+=", device ${BASH_REMATCH[1]}"
        conclude "$said"
    else
        judge_device "$line"
    fi
}

# look_up SOURCE NAME WHOSE: its row, or that of what is not listed, and whose remedy that has.
look_up() {
    local key="$1 $2"
    [[ -n ${ACTIONS[$key]:-} ]] || key="$1 other"
    action=${ACTIONS[$key]} severity=${SEVERITIES[$key]} words=${WORDS[$key]} whose=${OWN[$key]:-$3}
}

# conclude SENTENCE: by the action. The planner reads what is in the brackets.
conclude() {
    finding=$1
    case $action in
        ignore | tell) verdict=$action ;;
        *) verdict=drain finding+=" ($severity; ${whose}remedy: ${action/,*/, then a test})" ;;
    esac
}

# judge_check CHECK FOUND: what a check found.
judge_check() {
    local action=${ACTIONS[$1]} severity=${SEVERITIES[$1]} whose=${OWN[$1]:-}
    conclude "$1: $2"
}

# judge_device LINE: by the rows of disks and EFA devices.
judge_device() {
    local said kind disk row driver key action severity whose
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
        key=${KEYS[row]}
        action=${ACTIONS[$key]} severity=${SEVERITIES[$key]} whose=${OWN[$key]:-}
        subject="$disk ${PATTERNS[row]}" source=nvme
        [[ $kind != efa ]] || source=efa
        said=${said#"$disk: "}
        said=${said//[\[\]\"=]/ }
        conclude "$disk${KINDS[$kind]}: ${said:0:160}"
        return
    done
}

# judge_by_action LINE: what a line of Neuron's asks for itself.
judge_by_action() {
    case $1 in
        *' action=TERMINATE'*) action=replace ;;
        *' action='*RE[BL]O*) action=reboot ;;
        *) action=tell ;;
    esac
}

# The lines of NVLink 5 bear their severity; Xid 154 says what the driver wants, which may be nothing.
judge_by_words() {
    local fatal=${action#says/}
    action=tell
    if [[ $1 =~ recovery\ action\ changed\ from\ .*\ to\ [^\(]*\(([^\)]*)\) ]]; then
        words="the driver asks for: ${BASH_REMATCH[1]}"
        # By its version: GPU Reset Required, Drain and Reset, PF FLR; Node Reboot Required, OS Reboot.
        case ${BASH_REMATCH[1]} in
            None) ;;
            *Reset* | *FLR*) action=reset ;;
            *Reboot*) action=reboot ;;
            *) action=${BASH_REMATCH[1],,} ;;
        esac
    elif [[ $1 == *' Fatal '* ]]; then
        action=$fatal
    fi
}
