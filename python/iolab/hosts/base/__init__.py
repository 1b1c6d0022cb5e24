"""What a host is, and helpers of every kind of host."""
