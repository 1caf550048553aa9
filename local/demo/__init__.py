"""The demo: one story, told on real parts or on simulated ones."""
