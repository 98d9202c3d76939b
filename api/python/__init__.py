"""The Python interface, ``import tonlake``: a lake behind the same door as HTTP."""
