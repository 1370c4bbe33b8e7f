echo from the desk
