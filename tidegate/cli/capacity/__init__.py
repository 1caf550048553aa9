"""`tidegate capacity`: capacity that can be had, what it would do, and its purchase."""
