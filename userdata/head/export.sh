# shellcheck shell=bash
# needs: data_volume packages
# only_with: EXPORT_TO
# A folder of the data volume for the nodes, by NFS: to the VPC only, and root is nobody there.

readonly EXPORTS=/etc/exports.d/tidegate.exports

line() {
    echo "$DATA_DIR/export $EXPORT_TO(rw,sync,root_squash,no_subtree_check,sec=sys)"
}

check() {
    has_file "$EXPORTS" line && [[ -d $DATA_DIR/export ]]
}

apply() {
    [[ -n ${DATA_VOLUME:-} ]] || refuse "there is no data volume to export"
    install -d -m 755 "$DATA_DIR/export" "${EXPORTS%/*}"
    line | put_file "$EXPORTS" 644
    systemctl restart nfs-server
    exportfs -ra
}
