# shellcheck shell=bash
# needs: packages identity owner_rule
# wait_s: 120
# time_limit_s: 60
# People come from a directory: sssd asks it. What it binds with is fetched from Secrets Manager at
# each boot, into a file that only root reads.

readonly CONF=/etc/sssd/sssd.conf AUTHTOK=/etc/sssd/conf.d/10-authtok.conf
readonly CA=/etc/sssd/tidegate-ca.pem FETCHED=$RUN_DIR/directory-authtok
readonly SSHD=/etc/ssh/sshd_config.d/tidegate.conf
# Canonical's images start sshd with EC2 Instance Connect's AuthorizedKeysCommand as an option, which
# counts before any file. No key comes by it here: its user may not ask the metadata service.
# Source: EC2 user guide, "Install EC2 Instance Connect"; sshd_config(5).
readonly CONNECT=ssh.service.d/ec2-instance-connect.conf
readonly OF_PACKAGE=/usr/lib/systemd/system/$CONNECT MASK=/etc/systemd/system/$CONNECT

# User data has room for it on nodes, the parameter of head and login nodes has not.
conf() {
    if [[ -e files/sssd.conf ]]; then cat files/sssd.conf; else printf '%s' "${SSSD_CONF:-}"; fi
}

ca() {
    if [[ -e files/directory-ca.pem ]]; then
        cat files/directory-ca.pem
    else
        printf '%s' "${DIRECTORY_CA:-}"
    fi
}

# Where people log in with a key that the directory has.
sshd_conf() {
    printf 'AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys\nAuthorizedKeysCommandUser nobody'
}

has_logins() {
    [[ $ROLE == node || ! -d ${SSHD%/*} ]] || { has_file "$SSHD" sshd_conf && ! is_overruled; }
}

is_overruled() {
    [[ -e $OF_PACKAGE && $(readlink "$MASK") != /dev/null ]]
}

# let_in: by keys of the directory. Sessions that are open stay.
let_in() {
    put_file "$SSHD" 644 <<<"$(sshd_conf)"
    if is_overruled; then
        install -d "${MASK%/*}"
        ln -sf /dev/null "$MASK"
        systemctl daemon-reload
        systemctl try-restart ssh
    fi
    systemctl reload ssh 2>/dev/null || true
}

check() {
    [[ -n $(conf) ]] || return 0
    cmp -s <(conf) "$CONF" && cmp -s <(ca) "$CA" && has_logins &&
        [[ -z ${DIRECTORY_SECRET:-} || -e $FETCHED ]] && systemctl is-active --quiet sssd
}

# The answer of Secrets Manager on standard input; one line of text.
take_authtok() {
    python3 -IS -c '
import json, sys
text = json.load(sys.stdin).get("SecretString", "")
if not text or "\n" in text or "\r" in text:
    sys.exit("the secret of the directory must hold one line of text")
print("[domain/tidegate]\nldap_default_authtok = " + text)'
}

fetch_authtok() {
    local answer
    if ! answer=$(aws_json secretsmanager secretsmanager.GetSecretValue \
        <<<"{\"SecretId\": \"$DIRECTORY_SECRET\"}"); then
        echo "Secrets Manager: $answer"
        return 1
    fi
    (umask 077 && take_authtok <<<"$answer" >"$AUTHTOK.new") || exit "$WRONG_CONFIGURATION"
    mv "$AUTHTOK.new" "$AUTHTOK"
    touch "$FETCHED"
}

apply() {
    install -d -m 711 /etc/sssd /etc/sssd/conf.d
    [[ -z ${DIRECTORY_SECRET:-} ]] || fetch_authtok
    ca | put_file "$CA" 644
    conf | put_file "$CONF" 600
    if [[ $ROLE != node ]]; then
        DEBIAN_FRONTEND=noninteractive pam-auth-update --enable sss mkhomedir
        [[ ! -d ${SSHD%/*} ]] || let_in
    fi
    local database
    for database in passwd group; do
        sed -i -E "/^$database:/{/sss/!s/\$/ sss/}" /etc/nsswitch.conf
    done
    systemctl restart sssd
}
