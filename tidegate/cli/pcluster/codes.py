"""What `--accept` may name: each kind of loss that makes a cluster dearer or weaker."""

WITHOUT_HARM = "without-harm"
CODES = frozenset(
    {
        *("accounting", "additional-resources", "desktop", "directory", "dns", "efa"),
        *("efs-throughput", "functions-network", "head-type", "hooks", "image", "instance-type"),
        *("job-size", "kms-key", "launch-template", "login-nodes", "lustre-backups", "lustre-data"),
        *("lustre-performance", "lustre-repository", "lustre-size", "memory", "node-settings"),
        *("on-demand-instead", "packages", "partition-settings", "placement-group", "proxy"),
        *("public-address", "resource-prefix", "rights", "security-groups", "shared-volume"),
        *("slurm-settings", "spot-price", "storage", "system", "tags", "threads"),
        *("unknown-key", "volume-performance"),
    }
)
