"""The transport of the API: the server, and ASGI middleware around the application.

``tonlake.api.app.create_app`` composes the layers, from the outside in: `gate` notes why a request is
refused, `metrics` counts it, `cache` sends what was answered before, `admission` bounds what is
under way and chooses threads (`lane`), `direct` skips the framework for fixed paths.
"""
