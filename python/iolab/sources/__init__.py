"""What is watched while a load runs: a source yields records while time passes."""
