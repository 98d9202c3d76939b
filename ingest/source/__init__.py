"""Where blocks come from: a node's folder, archive packages, lite servers."""
