"""Classifies traces into actions: what each trace did from a user's point of view."""
