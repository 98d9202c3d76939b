"""The TVM in Python: codepage 0 with the semantics of each global version up to 15.

``run`` is the door. ``instructions.txt`` is the table of instructions, ``code`` decodes code cells
with it, ``state`` runs the decoded steps, and the modules of ``instruction`` implement them.
"""
