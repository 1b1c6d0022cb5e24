"""Values, documents and stores that every part of the service uses."""
