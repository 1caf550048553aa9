# shellcheck shell=bash
# needs: identity packages
# only_with: LOG_GROUP
# wait_s: 120
# The boot's and slurmd's logs in CloudWatch, by AWS's agent, which AWS's images have.
# Of a path with a * the agent follows the file alone that was written last, unless it is told to follow all;
# then each has a stream of its own. Source: amazon-cloudwatch-agent, plugins/inputs/logfile/logfile.go.

readonly CTL=/opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl
readonly CONFIG=/etc/tidegate/cloudwatch.json

config() {
    cat <<EOF_CONFIG
{"agent": {"run_as_user": "root"},
 "logs": {"logs_collected": {"files": {"collect_list": [
  {"file_path": "/var/log/tidegate/*", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "{instance_id}/boot", "publish_multi_logs": true},
  {"file_path": "/var/log/slurm/slurmd.log", "log_group_name": "$LOG_GROUP",
   "log_stream_name": "{instance_id}/slurmd"}]}}}}
EOF_CONFIG
}

check() {
    has_file "$CONFIG" config && systemctl is-active --quiet amazon-cloudwatch-agent
}

apply() {
    [[ -x $CTL ]] || refuse "the image has no CloudWatch agent, which logs.nodes needs"
    config | put_file "$CONFIG" 644
    "$CTL" -a fetch-config -m ec2 -s -c "file:$CONFIG"
}
