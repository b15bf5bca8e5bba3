"""The command ``tmkb``. One module for each subcommand: ``configure(parser)`` and ``run(args) → exit status``."""
