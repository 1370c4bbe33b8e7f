"""Parts that all targets of model APIs share: settings, message content, prices and streams."""
