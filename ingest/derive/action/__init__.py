"""Classifies traces into actions: what each trace did, in terms of users."""
