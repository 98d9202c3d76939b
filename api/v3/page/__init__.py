"""Code shared by the lists of version 3: the rows of a page and their related data."""
