"""Reads a lake with Apache Spark, where one machine is too small; needs the extra ``spark``."""
