"""Operations of tools, prompts and resources. Providers do not depend on the protocol; their arguments are valid."""
