"""`tidegate report`: what some days cost, how long jobs waited, and what changed since then."""
