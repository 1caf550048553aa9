# shellcheck shell=bash
# needs: shared packages
# A new head knows the people of the cluster: those that the head before it published for the nodes.
# Without them no job of theirs could be submitted, and their numbers would be given to others. Once
# in a head's life: whom a person takes away later stays away. What they log in with is not there.

readonly PUBLISHED=$SHARED_DIR/.tidegate/users TAKEN_OVER=/etc/tidegate/users-taken-over

check() {
    [[ -e $TAKEN_OVER ]]
}

apply() {
    local groups='' people=''
    if [[ -e $PUBLISHED/passwd ]]; then
        groups=$(published group)
        people=$(published passwd)
    fi
    take_groups <<<"$groups"
    take_people <<<"$people"
    take_members <<<"$groups"
    touch "$TAKEN_OVER"
}

# published FILE: what only root or the agent can have written.
published() {
    [[ -n $(find "$PUBLISHED/$1" -maxdepth 0 -type f \( -user root -o -user "$AGENT_USER" \) \
        ! -perm /022) ]] || {
        console "users: nobody is taken over, $PUBLISHED/$1 is not root's or $AGENT_USER's alone:" \
            "mend it, delete $TAKEN_OVER and reboot"
        return 0
    }
    timeout 5 cat "$PUBLISHED/$1"
}

# is_good NAME NUMBER: people's alone, and no option. Names of directory services have dots.
is_good() {
    [[ $1 =~ ^[A-Za-z_][A-Za-z0-9_.@-]{0,31}$ && $2 =~ ^[1-9][0-9]{3,4}$ ]] &&
        (($2 >= 1000 && $2 < 60000))
}

# is_free DATABASE NAME NUMBER: who is known here by name stays as he is.
is_free() {
    ! getent "$1" "$2" >/dev/null || return
    ! getent "$1" "$3" >/dev/null || {
        console "users: $2 of the head before is not known here: $3 is the number of another"
        return 1
    }
}

take_groups() {
    local name number
    while IFS=: read -r name _ number _; do
        if is_good "$name" "$number" && is_free group "$name" "$number"; then
            groupadd -g "$number" "$name" || console "users: group $name is not taken over"
        fi
    done
}

take_people() {
    local name number group comment home shell
    while IFS=: read -r name _ number group comment home shell; do
        if is_good "$name" "$number" && is_free passwd "$name" "$number"; then
            add_person "$name" -u "$number" -g "$group" -c "$comment" -d "${home:-/}" \
                -s "${shell:-/bin/sh}" || console "users: $name is not taken over"
        fi
    done
}

# useradd refuses names with capitals, and the option that allows them has two spellings.
add_person() {
    local name=$1
    shift
    useradd -M "$@" "$name" || useradd --badname -M "$@" "$name" || useradd --badnames -M "$@" "$name"
}

take_members() {
    local name number members each
    while IFS=: read -r name _ number members; do
        if ! is_good "$name" "$number" || [[ $(getent group "$name") != "$name":*:"$number":* ]]; then
            continue
        fi
        for each in ${members//,/ }; do
            ! id "$each" &>/dev/null || gpasswd -a "$each" "$name" ||
                console "users: $each is not put into $name"
        done
    done
}
