"""Metrics of the service for Prometheus, its logs, and OpenTelemetry spans."""
