"""What `agentloom check` looks for: a module for each kind of finding (see `findings.Check`)."""
