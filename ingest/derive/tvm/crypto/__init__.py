"""Pure functions of the cryptography that TVM instructions name."""
