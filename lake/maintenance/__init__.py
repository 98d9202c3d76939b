"""Maintenance: compaction, undo, verification, removal of orphaned files."""
