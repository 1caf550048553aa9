"""The planner's passes: each is given what it needs, and returns what it decides."""
