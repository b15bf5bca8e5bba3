"""Files below a folder, reached by descriptors, so that nothing above it is."""
