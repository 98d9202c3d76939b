"""What contracts of each standard hold, a module for each standard."""
