"""SQL over HTTP; each statement runs in a sandboxed process that can only read the lake."""
