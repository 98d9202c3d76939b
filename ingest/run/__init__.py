"""Runs an ingest: the pipeline, the follower, the upgrade."""
