"""A local cluster for trying things out: it stays until whoever plays with it leaves."""
