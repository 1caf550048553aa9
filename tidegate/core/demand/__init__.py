"""What the queue needs: which jobs want capacity, what fits them, and what accounting forbids."""
