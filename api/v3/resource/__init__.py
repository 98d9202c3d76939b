"""Resources of version 3: the structs of responses, built from rows."""
