"""The command line: one module for each command, loaded when that command is used.

``main`` starts it, ``options`` holds what every command takes, ``render`` writes to the terminal or as JSON, ``exits``
turns errors into messages and exit codes. Every command module exposes one click command called ``command``.
"""
