"""The stages on which the idioms of other stacks than Flask are played, and what plays them."""
