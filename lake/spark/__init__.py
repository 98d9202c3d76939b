"""A lake in Apache Spark, for what one machine cannot do in time; needs the extra ``spark``."""
