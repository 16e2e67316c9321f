"""The facades that people import."""
