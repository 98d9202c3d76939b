"""Ingests with Apache Spark: the workers of a cluster decode ranges of masterchain blocks."""
