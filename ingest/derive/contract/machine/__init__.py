"""The instructions of the TVM that most get-methods consist of, run without the TVM."""
