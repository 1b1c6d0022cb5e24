"""What the evidence of one run says, as facts, metrics and series."""
