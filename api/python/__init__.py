"""What ``import tonlake`` gives: a lake in Python, over the same doors as HTTP."""
