"""Several replicas of one server: requests about a session or a task reach the replica that has it in memory."""
