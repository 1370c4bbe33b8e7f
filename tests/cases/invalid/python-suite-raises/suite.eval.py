def suite():
    return {"tests": [1 / 0]}
