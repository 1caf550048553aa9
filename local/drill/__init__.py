"""`tidegate drill restore`: a head is lost, then its volume, and what comes back is measured."""
