"""The commit log: entries, snapshots, file paths and durable writes."""
