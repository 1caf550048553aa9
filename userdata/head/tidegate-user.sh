#!/bin/bash
# usage: tidegate-user list
#        tidegate-user add NAME [--group NAME]... [--key KEY]... [--account NAME]
#        tidegate-user remove NAME
# The people of this cluster. They live on the head: its agent publishes them, so that nodes and the
# head after this one know them by the same names and numbers. Their homes are on the shared folder.
set -uo pipefail

# Those of people: see userdata/head/users.sh.
readonly LEAST=1000 END=60000

fail() {
    echo "$*" >&2
    exit 1
}

homes() { useradd -D | sed -n 's/^HOME=//p'; }
number_of() { id -u "$1" 2>/dev/null; }
is_persons() { [[ $1 =~ ^[0-9]+$ ]] && (($1 >= LEAST && $1 < END)); }
home_of() { getent passwd "$1" | cut -d: -f6; }
# keys_of NAME HOME: how many lines hold one. The file is that person's, and may be anything, so it is
# read as them, and not for long; a home without a file has none.
keys_of() {
    local file=$2/.ssh/authorized_keys
    [[ -f $file ]] || file=/dev/null
    timeout 2 runuser -u "$1" -- head -c 1M "$file" 2>/dev/null | grep -cE '^[^#[:space:]]'
}

# A line for each: name, number, groups, home, how many keys, how many jobs. Tabs between them.
list() {
    local name number home owners jobs='?' is_known=1
    owners=$(timeout 10 squeue -h -a -o %u 2>/dev/null) || is_known=0
    while IFS=: read -r name _ number _ _ home _; do
        is_persons "$number" || continue
        ((is_known == 0)) || jobs=$(grep -cx "$name" <<<"$owners")
        printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "$number" "$(id -Gn "$name" 2>/dev/null | tr ' ' ',')" \
            "$home" "$(keys_of "$name" "$home")" "$jobs"
    done < <(getent passwd | sort -t: -k3n)
}

# free_number HOME: the home's, when it is there from before; else one that no home belongs to, since
# whoever gets the number of somebody who was removed would own all that is left of them.
free_number() {
    local number taken
    if [[ -d $1 ]]; then
        number=$(stat -c %u "$1")
        is_persons "$number" || fail "$1 is there and belongs to number $number: move it away first"
        taken=$(getent passwd "$number" | cut -d: -f1)
        [[ -z $taken ]] || fail "$1 is there and belongs to $taken: move it away first"
        echo "$number"
        return
    fi
    next_number
}

# For a person or a group: one that nobody has or had.
next_number() {
    local number
    number=$(numbers | awk -v end="$END" '$1 < end && $1 > most {most = $1} END {print most + 1}')
    is_persons "$number" || fail "there is no number left below $END"
    echo "$number"
}

numbers() {
    local published
    published=$(dirname "$(homes)")/.tidegate/users
    echo $((LEAST - 1))
    getent passwd | cut -d: -f3
    getent group | cut -d: -f3
    cut -d: -f3 "$published/passwd" "$published/group" 2>/dev/null
    stat -c $'%u\n%g' "$(homes)"/* 2>/dev/null
}

# add_key NAME KEY: written as that person, who owns the folder and could have put a link there.
add_key() {
    # shellcheck disable=SC2016  # the inner shell expands it
    runuser -u "$1" -- bash -c 'umask 077; cd "$1" && mkdir -p .ssh && touch .ssh/authorized_keys &&
        { grep -qxF -e "$2" .ssh/authorized_keys || {
            [[ ! -s .ssh/authorized_keys || -z $(tail -c 1 .ssh/authorized_keys) ]] || echo
            printf "%s\n" "$2"; } >>.ssh/authorized_keys; }' \
        - "$(home_of "$1")" "$2"
}

has_accounting() { [[ $(scontrol show config 2>/dev/null) == *AccountingStorageType*slurmdbd* ]]; }

# add_account NAME ACCOUNT
add_account() {
    has_accounting || fail "--account: this cluster has no accounting (slurm: {accounting: true})"
    [[ -n $(sacctmgr -nP show account "$2" format=account) ]] ||
        fail "there is no account $2; make it first: sacctmgr add account $2"
    [[ -n $(sacctmgr -nP show assoc user="$1" account="$2" format=user) ]] ||
        sacctmgr -i add user "$1" account="$2" >/dev/null || fail "sacctmgr did not add $1 to $2"
}

readonly NAME='^[a-z_][a-z0-9_-]{0,30}$'
readonly KEY='^(ssh-|ecdsa-|sk-)[^[:space:]]+ [A-Za-z0-9+/=]{40,}( [[:print:]]*)?$'

# read_options WORD...: into account, groups and keys. All are looked at before anything is done.
read_options() {
    local option value
    while (($#)); do
        option=$1 value=$2
        shift 2
        case $option in
            --group)
                [[ $value =~ $NAME ]] || fail "$value is no name of a group"
                groups+=("$value")
                ;;
            --key)
                [[ $value =~ $KEY ]] || fail "this is no public key of SSH: ${value:0:60}"
                keys+=("$value")
                ;;
            --account) account=$value ;;
            *) fail "there is no option $option" ;;
        esac
    done
}

make() {
    local name=$1 home number
    home=$(homes)/$name
    number=$(free_number "$home") || exit
    useradd -m -s /bin/bash -u "$number" "$name" || exit
}

# join NAME GROUP
join() {
    getent group "$2" >/dev/null || groupadd -g "$(next_number)" "$2" || exit
    is_persons "$(getent group "$2" | cut -d: -f3)" || fail "$2 is a group of the system"
    gpasswd -a "$1" "$2" >/dev/null || exit
}

add() {
    local name=$1 account='' groups=() keys=() each
    [[ $name =~ $NAME ]] ||
        fail "$name: a name begins with a small letter and has small letters, digits, - and _ alone"
    read_options "${@:2}"
    id "$name" &>/dev/null || make "$name"
    is_persons "$(number_of "$name")" || fail "$name is a user of the system"
    for each in ${groups[@]+"${groups[@]}"}; do
        join "$name" "$each"
    done
    for each in ${keys[@]+"${keys[@]}"}; do
        add_key "$name" "$each" || fail "the key of $name could not be written"
    done
    [[ -z $account ]] || add_account "$name" "$account"
    echo "$name: number $(number_of "$name"), home $(home_of "$name"); nodes know $name in a minute"
    ! lacks_account "$name" || echo "$name may submit no job without an account: give --account"
}

# lacks_account NAME: Slurm takes no job of who has none, where it is told to ask.
lacks_account() {
    local enforced='AccountingStorageEnforce *= [^'$'\n'']*associations'
    [[ $(scontrol show config 2>/dev/null) =~ $enforced ]] &&
        [[ -z $(sacctmgr -nP show assoc user="$1" format=user) ]]
}

remove() {
    local name=$1 number home jobs
    number=$(number_of "$name") || fail "there is no user $name"
    is_persons "$number" || fail "$name is a user of the system (number $number)"
    jobs=$(timeout 10 squeue -h -a -u "$name" -o %A) ||
        fail "Slurm does not answer, so nobody knows whether $name has jobs"
    [[ -z $jobs ]] || fail "$name has $(wc -l <<<"$jobs") jobs; first: scancel -u $name"
    home=$(home_of "$name")
    userdel "$name" || exit
    echo "$name is gone, from nodes within a minute; $home stays, and number $number with it"
}

case ${1:-} in
    list) (($# == 1)) || fail "list takes no more words"; list ;;
    add) (($# >= 2 && $# % 2 == 0)) || fail "add NAME, and a value for each option"; add "${@:2}" ;;
    remove) (($# == 2)) || fail "remove takes one name"; remove "$2" ;;
    *) fail "list, add NAME or remove NAME" ;;
esac
