"""Launches in the making: how a queue is packed into nodes, and why something was not bought."""
