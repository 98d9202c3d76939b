"""What the service shows of itself to Prometheus."""
