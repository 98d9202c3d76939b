"""Runs the named queries on Apache Spark: the same files, translated to Spark's SQL."""
