"""The JSON of version 3, described once: structs whose annotations name their columns.

A struct is the schema (OpenAPI, tables) and, with the annotations of ``field``, the layout for both
writers, which ``build`` compiles: structs in Python, JSON by the C extension.
"""
