"""The named queries on Apache Spark: the same files, said in Spark's SQL."""
