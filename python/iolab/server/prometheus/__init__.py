"""The /metrics endpoint, as text and protobuf."""
