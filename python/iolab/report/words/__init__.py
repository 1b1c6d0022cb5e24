"""Text of the report that is made from numbers."""
