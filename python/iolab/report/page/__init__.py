"""Self-contained HTML files."""
