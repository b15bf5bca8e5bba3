"""Review changes of code: which authorization mistake a changed section makes, if any."""
