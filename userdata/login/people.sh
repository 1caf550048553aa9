# shellcheck shell=bash
# needs: users packages
# People log in here. Nodes ask for names at the start of a job; here they are asked for again and
# again, so that a new person can log in within seconds. What one person runs leaves the machine
# to the others: no session gets all of its memory.

readonly COPY=/etc/tidegate/prolog.d/10-users.sh EXTRA=/var/lib/extrausers
readonly REFRESH=/etc/tidegate/refresh-users UNIT=/etc/systemd/system/tidegate-users.service
readonly SLICE=/etc/systemd/system/user-.slice.d/50-tidegate.conf

# The head publishes no passwords. Without a line in the shadow file PAM lets nobody in, not even
# with a key (pam_unix(8), account management); `*` is a password that nothing fits.
refresh() {
    cat <<EOF_REFRESH
#!/bin/bash
$COPY
new=$EXTRA/.shadow.\$\$
(umask 027 && awk -F: '{print \$1 ":*:19000:0:99999:7:::"}' $EXTRA/passwd >"\$new") &&
    chgrp shadow "\$new" && mv "\$new" $EXTRA/shadow
rm -f "\$new"
EOF_REFRESH
}

unit() {
    cat <<EOF_UNIT
[Unit]
Description=Tidegate: the people of the cluster can log in
[Service]
ExecStart=/bin/sh -c 'while sleep $USERS_POLL_S; do $REFRESH; done'
Restart=always
RestartSec=10
[Install]
WantedBy=multi-user.target
EOF_UNIT
}

slice() {
    printf '[Slice]\nMemoryMax=75%%\nTasksMax=8192'
}

has_shadow() {
    grep -qE '^shadow:.*extrausers' /etc/nsswitch.conf
}

# A directory service has its own answers, and homes are made where it says.
check() {
    has_file "$SLICE" slice || return
    if [[ $USERS == sssd ]]; then
        grep -q pam_mkhomedir /etc/pam.d/common-session
        return
    fi
    has_shadow && has_file "$REFRESH" refresh && has_file "$UNIT" unit &&
        systemctl is-active --quiet tidegate-users
}

apply() {
    install -d "${SLICE%/*}"
    put_file "$SLICE" 644 <<<"$(slice)"
    if [[ $USERS == sssd ]]; then
        DEBIAN_FRONTEND=noninteractive pam-auth-update --enable mkhomedir
        systemctl daemon-reload
        return
    fi
    refresh | put_file "$REFRESH" 755
    unit | put_file "$UNIT" 644
    has_shadow || sed -i -E '/^shadow:/s/$/ extrausers/' /etc/nsswitch.conf
    "$REFRESH" 2>/dev/null
    systemctl enable tidegate-users  # reloads all units
    systemctl restart tidegate-users
}
