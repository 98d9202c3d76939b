"""The methods of API version 2, a module for each subject."""
