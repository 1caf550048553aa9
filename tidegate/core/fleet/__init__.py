"""What there is: every node, joined from Slurm, EC2 and ledger, and what may be done with it."""
