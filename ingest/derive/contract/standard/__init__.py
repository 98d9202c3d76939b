"""Detectors and readers of contracts, a module for each standard."""
