"""Traces to actions: what every trace did, said in words."""
