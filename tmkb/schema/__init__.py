"""Read, merge and check the YAML files of schema folders. No protocol logic."""
