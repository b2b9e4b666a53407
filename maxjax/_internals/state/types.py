"""Types of mutable references, which maxjax does not have: nothing is an instance."""


class AbstractRef:
    """The type of a reference."""
