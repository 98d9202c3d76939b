"""Ingest as it runs: the pipeline, the follower, the upgrade."""
