"""The HTTP service: server, middleware and the order in which it is composed.

``api.app.create_app`` composes the layers, outermost first: ``gate`` checks keys and rates,
``metrics`` counts, ``cache`` sends buffered responses, ``admission`` bounds requests in flight and
chooses threads (``lane``), ``direct`` skips the framework for fixed paths.
"""
