"""Sources of blocks: a node's folder, archive packages, lite servers."""
