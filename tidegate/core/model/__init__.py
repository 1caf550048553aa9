"""Plain values: the words of EC2, Slurm and the cluster file; the ledger, orders and the plan."""
