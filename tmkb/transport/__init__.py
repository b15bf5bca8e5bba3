"""The only owner of pipes and sockets. A transport never changes an answer."""
