"""`tidegate import pcluster`: a ParallelCluster 3 configuration as a cluster file."""
