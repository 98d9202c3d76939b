"""How pages write amounts, outcomes, actions and bodies: words and forms, nothing of a page."""
