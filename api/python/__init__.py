"""The Python interface, ``import tonlake``: queries a lake through the same code as HTTP."""
