"""Types of references."""
