"""The version of the distribution, read by the build and by ``agentloom --version`` without any import."""

__version__ = "0.1.0"
