"""Tables that readers yield, text decoding, and detection of formats."""
