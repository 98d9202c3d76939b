"""The HTTP service: server and middleware; ``api.app`` composes them.

From the outermost in: ``server`` limits connections around uvicorn's protocol, ``gate`` checks
keys and rates, ``Metrics`` counts requests, ``Crowd`` limits open streams, ``transit`` counts bytes
received and sent, ``representation`` caches and compresses responses, ``admission`` limits requests
in flight and gives them threads.
"""
