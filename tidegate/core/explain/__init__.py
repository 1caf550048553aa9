"""Answers for people from what is stored: why a job waits, how the cluster is, what a look did."""
