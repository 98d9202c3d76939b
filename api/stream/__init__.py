"""Streams of events: new commits and pending messages, sent to subscribers as they happen."""
