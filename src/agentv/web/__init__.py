"""What web applications share: request checks, endpoint declarations, encoded responses. Only this uses Starlette."""
