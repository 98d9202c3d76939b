"""The block explorer: HTML pages rendered on the server, usable without JavaScript."""
