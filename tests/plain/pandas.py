"""Hides pandas, which an ordinary install lacks and which Arrow would load in every process."""

raise ImportError("tests are without pandas, except those that ask for the fixture")
