"""The application: routes, access policy, actions, compression, and the server process."""
