"""Metrics of the service for Prometheus, and its logs."""
