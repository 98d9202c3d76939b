"""Puts decoded blocks in chain order and cuts them into commits."""
