"""Glue to the world outside: model providers, SDKs, frameworks. Loaded only when used."""
