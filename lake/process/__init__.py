"""Child processes and their memory."""
