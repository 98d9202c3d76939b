"""The HTTP service: server, middleware and the order in which it is composed.

``layers`` composes the layers, outermost first: ``proxy`` finds the client of a forwarded request,
``gate`` checks API keys and rate limits, ``metrics`` counts requests, ``Crowd`` limits open
streams, ``pieces`` sends large responses in chunks, ``cache`` sends buffered responses, ``body``
receives request bodies, ``admission`` limits requests in flight and picks their threads (``lane``),
``direct`` bypasses the framework for fixed paths. Below them ``head`` wraps the server's protocol,
and ``connection`` closes slow connections.
"""
