"""The planner's passes, one file each, over one working state."""
