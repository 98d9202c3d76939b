"""What accounts are: their interfaces out of rows of the lake."""
