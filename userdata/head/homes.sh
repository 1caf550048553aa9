# shellcheck shell=bash
# needs: shared packages directory
# People's homes are in the shared folder: a job starts where it was sent from and writes its output
# there, which a node must know as well. `useradd -m` and `adduser` make them there, and whoever has
# none yet gets one at a login, as people of a directory service do. tidegate-user does all of it.

readonly HOMES=$SHARED_DIR/home USER_COMMAND=/usr/local/sbin/tidegate-user

check() {
    cmp -s files/tidegate-user.sh "$USER_COMMAND" &&
        [[ -d $HOMES && $(useradd -D) == *"HOME=$HOMES"$'\n'* ]] &&
        { [[ ! -e /etc/adduser.conf ]] || grep -qx "DHOME=$HOMES" /etc/adduser.conf; } &&
        grep -q pam_mkhomedir /etc/pam.d/common-session
}

apply() {
    put_file "$USER_COMMAND" 755 <files/tidegate-user.sh
    install -d -m 755 "$HOMES"
    useradd -D -b "$HOMES"
    if [[ -e /etc/adduser.conf ]]; then
        sed -i '/^DHOME=/d' /etc/adduser.conf
        echo "DHOME=$HOMES" >>/etc/adduser.conf
    fi
    DEBIAN_FRONTEND=noninteractive pam-auth-update --enable mkhomedir
}
