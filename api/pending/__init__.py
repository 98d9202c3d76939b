"""Messages that were sent and are in no block yet, and what they would do."""
