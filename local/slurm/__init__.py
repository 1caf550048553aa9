"""The real Slurm of this computer."""
