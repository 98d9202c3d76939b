"""The HTTP service: server, middleware and the order in which it is composed.

``layers`` composes the layers, outermost first: ``proxy`` finds the client of a forwarded request,
``gate`` checks keys and rates, ``metrics`` counts, ``Crowd`` bounds streams, ``pieces`` sends large
responses piece by piece, ``cache`` sends buffered responses, ``body`` receives bodies,
``admission`` bounds requests in flight and chooses threads (``lane``), ``direct`` skips the
framework for fixed paths. Below them ``head`` wraps the server's protocol, and ``connection``
closes what is too slow.
"""
