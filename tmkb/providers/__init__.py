"""Operations of tools, prompts and resources. Providers know nothing of the protocol; their arguments are validated."""
