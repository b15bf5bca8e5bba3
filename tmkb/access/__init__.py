"""Who may use what of a server over HTTP: an OAuth 2.1 resource server, with roles in a YAML file."""
