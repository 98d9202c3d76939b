"""Resources of version 3: rows to the structs that answers are made of."""
