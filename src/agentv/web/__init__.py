"""What web applications share: requests are guarded, endpoints declared, answers encoded. Only this knows Starlette."""
