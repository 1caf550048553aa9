# shellcheck shell=bash
# needs: shared packages directory
# Users exist on the head; its agent publishes them into the shared folder and nodes read a
# copy (libnss-extrausers). A copy, since a link would make every login hang together with the
# shared folder; the Prolog renews it, so that a user is known when their first job starts. Amazon
# Linux has no such library: there the copy goes into the node's own files.

readonly COPY=/etc/tidegate/prolog.d/10-users.sh

is_amazon() {
    grep -qsE '^ID="?amzn"?$' /etc/os-release
}

# What is asked for names in the end.
word() {
    if is_sssd; then echo sss; elif is_amazon; then echo files; else echo extrausers; fi
}

prolog() {
    printf '#!/bin/bash\nreadonly published=%q\n' "$SHARED_DIR/.tidegate/users"
    if is_amazon; then
        prolog_of_files
    else
        prolog_of_library
    fi
}

prolog_of_files() {
    cat <<'END_OF_PROLOG'
# Never fails: a job whose user has no name yet runs all the same, by number. The node's own lines
# are those that were not published at the last time; no published one takes their names or numbers.
# One at a time: of two that jobs start together one would take what the other has just published for
# the node's own.
cd /var/lib/tidegate-users && exec 9>.lock || exit 0
flock -w 10 9 || exit 0
for database in passwd group; do
    touch "$database"
    timeout 5 cat "$published/$database" >"$database.$$" 2>/dev/null &&
        awk -F: -v last="$database" -v now="$database.$$" '
            FILENAME == last { was[$0]; next }
            FILENAME != now { if (!($0 in was)) { print; names[$1]; ids[$3] } next }
            $3 >= 1000 && $3 < 60000 && !($1 in names) && !($3 in ids)
        ' "$database" "/etc/$database" "$database.$$" >"/etc/.$database.$$" &&
        chmod 644 "/etc/.$database.$$" && mv "$database.$$" "$database" &&
        mv "/etc/.$database.$$" "/etc/$database"
    rm -f "$database.$$" "/etc/.$database.$$"
done
exit 0
END_OF_PROLOG
}

prolog_of_library() {
    cat <<'END_OF_PROLOG'
# Never fails: a job whose user has no name yet runs all the same, by number. Ids below 1000
# are the node's own; some versions of libnss-extrausers would take group 0 from the file.
for database in passwd group; do
    new=/var/lib/extrausers/.$database.$$
    timeout 5 awk -F: '$3 >= 1000 && $3 < 60000' "$published/$database" >"$new" &&
        mv "$new" "/var/lib/extrausers/$database"
    rm -f "$new"
done
exit 0
END_OF_PROLOG
}

# A directory service of one's own, whose client the image has with its configuration.
is_sssd() {
    [[ $USERS == sssd ]]
}

check() {
    if is_sssd; then
        systemctl is-active --quiet sssd && is_asked
        return
    fi
    has_file "$COPY" prolog && is_asked
}

is_asked() {
    [[ $(grep -cE "^(passwd|group):.*$(word)" /etc/nsswitch.conf) == 2 ]]
}

add_to_nsswitch() {
    local database
    for database in passwd group; do
        sed -i -E "/^$database:/{/$(word)/!s/\$/ $(word)/}" /etc/nsswitch.conf
    done
}

apply() {
    if is_sssd; then
        [[ -s /etc/sssd/sssd.conf ]] || refuse "the image has no /etc/sssd/sssd.conf, which users: sssd needs"
        systemctl start sssd
        add_to_nsswitch
        return
    fi
    install -d /var/lib/extrausers /var/lib/tidegate-users "${COPY%/*}"
    prolog | put_file "$COPY" 755
    "$COPY" 2>/dev/null
    add_to_nsswitch
}
