"""The engine, its drivers and the host calls: what runs an agent."""
