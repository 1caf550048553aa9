# shellcheck shell=bash
# needs: quiesce
# wait_s: 900
# time_limit_s: 900
# The programs that the other stages call. An image of one's own has them all; AWS's and
# Canonical's get what they lack from their distribution's repositories, and Slurm from another one
# where the cluster file names it.

# Slurm's packages, where they lie in S3.
readonly FROM_S3=/opt/tidegate/packages MAX_OBJECTS=2000 MAX_MIB=2048
# The site's hook, which comes next, may bring the client of Lustre that is not there; the stage lustre
# asks again.
readonly BY_HOOK=$RUN_DIR/lustre-by-hook

missing() {
    local program
    for program in $PROGRAMS; do
        [[ $program == mount.lustre ]] || command -v "$program" >/dev/null || echo "$program"
    done
    [[ -e $BY_HOOK ]] || lacks_of_lustre
}

lacks_of_lustre() {
    [[ " $PROGRAMS " == *" mount.lustre "* ]] || return 0
    command -v mount.lustre >/dev/null || echo mount.lustre
    modinfo lustre >/dev/null 2>&1 || echo lustre.ko
}

# leave_to_hook: whether nothing else is missing, and there is a hook.
leave_to_hook() {
    local lustre
    lustre=$(lacks_of_lustre)
    [[ -n $ON_NODE_START && -n $lustre && $(missing) == "$lustre" ]] && touch "$BY_HOOK"
}

check() {
    [[ -z $(missing) ]] && is_release
}

# is_release: head and nodes of one Slurm, whatever else a repository has. Of an image that gets no
# packages its owner takes care. The daemons tell their version without a configuration, others not,
# and a login node has no daemon.
is_release() {
    local found
    [[ -n $SLURM_RELEASE && -n $PACKAGES ]] || return 0
    printf 'ClusterName=any\nSlurmctldHost=any\n' >"$RUN_DIR/any.conf"
    found=$(SLURM_CONF=$RUN_DIR/any.conf "$(command -v slurmd || command -v slurmctld || command -v scontrol)" -V)
    [[ ${found##* } == "$SLURM_RELEASE".* ]] || { echo "installed is $found" && false; }
}

apply() {
    if [[ -z $PACKAGES ]]; then
        ! leave_to_hook || return 0
        refuse "the image lacks $(missing | paste -sd' ')"
    fi
    # Packages must not start what they bring: Munge would run with a key of its own.
    put_file /usr/sbin/policy-rc.d 755 <<<$'#!/bin/sh\nexit 101'
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    if command -v apt-get >/dev/null; then
        install_with apt
    else
        install_with dnf
    fi
    rm -f /etc/munge/munge.key
    add_slurm_user
    # Of Amazon Linux's own repository nobody asks which kernels it knows.
    if is_kernel_unknown || ! command -v apt-get >/dev/null; then
        leave_to_hook || ! is_kernel_unknown ||
            refuse "AWS's packages have no Lustre module for kernel $(uname -r): take an image with a kernel that they know (docs/deploying.md)"
    fi
    if [[ -n $(missing) ]]; then
        echo "still missing: $(missing | paste -sd' ')"
        return 1
    fi
    is_release || refuse "$REPOSITORY_URL has no Slurm $SLURM_RELEASE for this system"
}

# The repository of Lustre's client was read, and has none for this kernel: to try again does not help.
is_kernel_unknown() {
    [[ $(missing) == lustre.ko ]] && command -v apt-cache >/dev/null &&
        [[ -n $(apt-cache madison lustre-client-utils) ]] &&
        [[ -z $(apt-cache madison "lustre-client-modules-$(uname -r)") ]]
}

# Debian's packages make this user, those of SchedMD none. The number is Debian's: slurmd takes
# orders from SlurmUser by number, so head and nodes must agree.
add_slurm_user() {
    ! id slurm >/dev/null 2>&1 || return 0
    groupadd --system --gid 64030 slurm
    useradd --system --uid 64030 --gid slurm --no-create-home --shell /usr/sbin/nologin slurm
}

# install_with MANAGER: all at once; when that fails one by one, so that one bad package does not
# keep the others away and the log names it.
install_with() {
    local package packages
    "refresh_$1"
    packages=$("$1_names")
    # shellcheck disable=SC2086
    if "$1_install" $packages; then
        return 0
    fi
    for package in $packages; do
        "$1_install" "$package" || echo "not installed: $package"
    done
}

apt_install() {
    apt_get install --no-install-recommends "$@"
}

# Slurm's packages have the names of Debian or, of SchedMD's own make, others. Source: Slurm's
# Quick Start Administrator Guide, "Debian Packages".
apt_names() {
    local name
    for name in $PACKAGES; do
        if [[ $name == slurm* && -n $(apt-cache madison "slurm-smd-${name#slurm-}") ]]; then
            name=slurm-smd-${name#slurm-}
        fi
        [[ $name != lustre-client-modules ]] || name+=-$(uname -r)
        echo "$name"
    done
}

refresh_apt() {
    [[ $(missing) != *mount.efs* ]] || add_efs_source || echo "no repository with mount.efs"
    [[ $(missing) != *lustre* ]] || add_lustre_source || echo "no repository with mount.lustre"
    [[ -z $REPOSITORY_URL ]] || add_slurm_source
    apt_get update || true
}

# fetch_key URL PATH: a repository's public key to PATH.asc or PATH.gpg, since apt tells text from
# binary by the file's name; prints which.
fetch_key() {
    curl -fsS -m 20 --retry 3 -o "$2" "$1" || return
    if grep -aq "BEGIN PGP" "$2"; then
        mv "$2" "$2.asc" && echo "$2.asc"
    else
        mv "$2" "$2.gpg" && echo "$2.gpg"
    fi
}

# s3_get LOCATION PATH: what is at s3://LOCATION, or its list, to a file. Ends the stage where
# another try could not help. Source of the codes: S3 API reference, "List of error codes".
s3_get() {
    local status said
    rm -f "$2"
    if status=$(signed s3 -m 300 -w '%{http_code}' -o "$2" "$(endpoint s3)/$1") &&
        [[ $status == 200 ]]; then
        return 0
    fi
    said=$(tr -d '\n' <"$2" |
        sed -n 's|.*<Code>\([^<]*\)</Code>.*<Message>\([^<]*\)</Message>.*|\1: \2|p') || true
    said=${said:-HTTP status $status}
    case $said in
        AccessDenied:*) said+="; the machine's role may not read it, or it is not there" ;;
        PermanentRedirect:*) said+="; the bucket is not in $AWS_REGION" ;;
    esac
    echo "s3://$(location "$1"): $said" >&2
    case $said in
        AccessDenied:* | PermanentRedirect:* | NoSuchBucket:* | NoSuchKey:* | InvalidObjectState:*)
            exit "$WRONG_CONFIGURATION"
            ;;
    esac
    return 1
}

# location ASKED: bucket and key, or prefix, of what is asked of S3.
location() {
    local found=${1/\?*prefix=//}
    echo "${found//%2F//}"
}

# list_s3 BUCKET PREFIX PATH: what lies under the prefix, a line each: bytes, address, name.
list_s3() {
    local asked token='' page=$RUN_DIR/page
    asked="encoding-type=url&list-type=2&prefix=${2//\//%2F}"
    : >"$3"
    while true; do
        s3_get "$1?${token:+continuation-token=$token&}$asked" "$page"
        python3 -IS ./listing.py "$2" <"$page" >"$page.read"
        token=$(head -n 1 "$page.read")
        tail -n +2 "$page.read" >>"$3"
        (($(wc -l <"$3") <= MAX_OBJECTS)) ||
            refuse "more than $MAX_OBJECTS objects lie under s3://$1/$2: give the packages a place of their own"
        [[ -n $token ]] || return 0
    done
}

# fetch_s3_folder URL: what lies under it becomes the folder $FROM_S3, as a whole: what was published
# between two tries does not mix. apt reads it as a user of its own.
fetch_s3_folder() {
    local place=${1#s3://} list=$RUN_DIR/objects bytes=0 size address name
    list_s3 "${place%%/*}" "${place#*/}/" "$list"
    [[ -s $list ]] || refuse "nothing lies under $1/"
    while read -r size _; do
        bytes=$((bytes + size))
    done <"$list"
    ((bytes >> 20 <= MAX_MIB)) ||
        refuse "$((bytes >> 20)) MiB lie under $1/, more than $MAX_MIB: give the packages a place of their own"
    rm -rf "$FROM_S3.new"
    while read -r size address name; do
        mkdir -p "$(dirname "$FROM_S3.new/$name")"
        s3_get "${place%%/*}/$address" "$FROM_S3.new/$name"
    done <"$list"
    chmod -R u=rwX,go=rX "$FROM_S3.new"
    rm -rf "$FROM_S3"
    mv "$FROM_S3.new" "$FROM_S3"
}

# Where apt and dnf find the repository and its key: what is in S3, which they cannot ask since they
# sign nothing, is fetched with the machine's role. The stage that finds out region and domain may
# still be at it, and an image is baked without it.
find_slurm_source() {
    source_url=${REPOSITORY_URL%/} key_url=${REPOSITORY_KEY_URL%/}
    if [[ $source_url$key_url == *s3://* ]]; then
        AWS_REGION=${AWS_REGION:-$(imds placement/region)}
        AWS_DOMAIN=${AWS_DOMAIN:-$(imds services/domain)}
        mkdir -p "${FROM_S3%/*}"
    fi
    if [[ $key_url == s3://* ]]; then
        s3_get "${key_url#s3://}" "$FROM_S3.key"
        key_url=file://$FROM_S3.key
    fi
    if [[ $source_url == s3://* ]]; then
        fetch_s3_folder "$source_url"
        source_url=file://$FROM_S3
    fi
}

# The release of the cluster file and no other, also where the system's own is newer.
add_slurm_source() {
    local key source_url key_url
    find_slurm_source
    key=$(fetch_key "$key_url" /usr/share/keyrings/tidegate-slurm)
    put_file /etc/apt/sources.list.d/tidegate-slurm.list 644 <<EOF_LIST
deb [signed-by=$key] $source_url $SUITE
EOF_LIST
    put_file /etc/apt/preferences.d/tidegate-slurm 644 <<EOF_PIN
Package: slurm* libslurm*
Pin: version $SLURM_RELEASE.*
Pin-Priority: 1001
EOF_PIN
}

# Ubuntu has no package of EFS's mount helper, and AWS has a repository for it: the address, the
# suite and the key are those of its installer (efs-utils, INSTALL.md) and of ParallelCluster
# (cookbook, efs/partial/_install_from_repo_debian.rb). Not a new major version unasked.
add_efs_source() {
    local version key
    version=$(sed -n 's/^VERSION_ID="\(.*\)"/\1/p' /etc/os-release)
    grep -qx ID=ubuntu /etc/os-release || return
    key=$(fetch_key "$EFS_HELPER_URL/efs-utils.gpg" /usr/share/keyrings/efs-utils) || return
    put_file /etc/apt/sources.list.d/efs-utils.list 644 <<EOF_LIST
deb [signed-by=$key] $EFS_HELPER_URL/repo/deb/ubuntu/$version $version main
EOF_LIST
    put_file /etc/apt/preferences.d/efs-utils 644 <<'EOF_PIN'
Package: amazon-efs-utils
Pin: version 3.*
Pin-Priority: 990
EOF_PIN
}

# FSx for Lustre's client: the addresses and suites are those of AWS's guide ("Installing the Lustre
# client") and of ParallelCluster (cookbook, lustre/partial/_install_lustre_debian.rb). A package for
# each kernel of AWS's, which may come later than the kernel.
add_lustre_source() {
    local codename key
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    grep -qx ID=ubuntu /etc/os-release || return
    key=$(fetch_key "$LUSTRE_KEY_URL" /usr/share/keyrings/fsx-lustre) || return
    put_file /etc/apt/sources.list.d/fsx-lustre.list 644 <<EOF_LIST
deb [signed-by=$key] $LUSTRE_URL $codename main
EOF_LIST
}

dnf_install() {
    dnf -q -y --setopt=retries=5 install "$@"
}

dnf_names() {
    local name
    for name in $PACKAGES; do
        [[ -z $SLURM_RELEASE || $name != slurm* ]] || name+="-$SLURM_RELEASE.*"
        echo "$name"
    done
}

# Before the system's own repositories, whatever versions those have. Amazon Linux 2023 has the EFS
# mount helper itself.
refresh_dnf() {
    local source_url key_url
    [[ -n $REPOSITORY_URL ]] || return 0
    find_slurm_source
    put_file /etc/yum.repos.d/tidegate-slurm.repo 644 <<EOF_REPO
[tidegate-slurm]
name=Slurm $SLURM_RELEASE
baseurl=$source_url
gpgkey=$key_url
gpgcheck=1
priority=1
EOF_REPO
}
