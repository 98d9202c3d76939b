"""The JSON of version 3, described once: structs whose annotations name their columns.

A struct is the schema (OpenAPI, tables) and, with the annotations of ``field``, the layout for both
writers: ``native`` compiles it for the extension ``tonlake.api.text._json``, ``build`` compiles it
to Python. ``table`` parses the annotations for both.
"""
