"""The commit log: entries, snapshots, paths of files, and durable writes."""
