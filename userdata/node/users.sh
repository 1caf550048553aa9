# shellcheck shell=bash
# needs: shared packages
# Users exist on the head; its agent publishes them into the shared folder and nodes read a
# copy (libnss-extrausers). A copy, since a link would make every login hang together with the
# shared folder; the Prolog renews it, so that a user is known when their first job starts.

readonly COPY=/etc/tidegate/prolog.d/10-users.sh

prolog() {
    {
        printf '#!/bin/bash\nreadonly published=%q\n' "$SHARED_DIR/.tidegate/users"
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
}

# A directory service of one's own, whose client the image has with its configuration.
is_sssd() {
    [[ $USERS == sssd ]]
}

check() {
    if is_sssd; then
        systemctl is-active --quiet sssd && [[ $(grep -cE '^(passwd|group):.*sss' /etc/nsswitch.conf) == 2 ]]
        return
    fi
    has_file "$COPY" "$(prolog)" &&
        [[ $(grep -cE '^(passwd|group):.*extrausers' /etc/nsswitch.conf) == 2 ]]
}

add_to_nsswitch() {
    local database
    for database in passwd group; do
        sed -i -E "/^$database:/{/$1/!s/\$/ $1/}" /etc/nsswitch.conf
    done
}

apply() {
    if is_sssd; then
        [[ -s /etc/sssd/sssd.conf ]] || refuse "the image has no /etc/sssd/sssd.conf, which users: sssd needs"
        systemctl start sssd
        add_to_nsswitch sss
        return
    fi
    install -d /var/lib/extrausers "${COPY%/*}"
    prolog | put_file "$COPY" 755
    "$COPY" 2>/dev/null
    add_to_nsswitch extrausers
}
