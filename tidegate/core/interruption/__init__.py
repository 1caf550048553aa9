"""What to do when AWS takes a node away, and what that cost running jobs."""
