"""A TON node's storage as a lake of Parquet files, asked with SQL and served over HTTP."""
