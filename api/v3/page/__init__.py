"""What the lists of version 3 share: rows of a page and what belongs to them."""
