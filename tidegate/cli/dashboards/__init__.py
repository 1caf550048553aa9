"""Grafana dashboards, made from a few words for each panel."""
