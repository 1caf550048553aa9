"""`tidegate market`: what the same work would cost in other regions."""
