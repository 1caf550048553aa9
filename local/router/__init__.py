"""Carries events, messages and schedules of the deployed stack to its Lambda functions."""
