"""The web application of `agentv view`: HTTP over the use cases of `app.view`."""
