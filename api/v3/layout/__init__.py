"""The JSON of version 3, described once: structs whose annotations name their columns.

A struct is the schema (OpenAPI, tables) and, with the annotations of ``field``, the layout that
both writers follow: ``native`` compiles it for the extension ``tonlake.api.text._json``, ``build``
reads it in Python. ``table`` takes the annotations apart for both.
"""
