"""The instructions, by groups; importing a group registers what runs them in module ``code``."""
