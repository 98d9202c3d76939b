"""The routes of version 3, a module for each subject."""
