"""What serves a method: ``(connection, revision, request) → effects``. One module for each capability."""
