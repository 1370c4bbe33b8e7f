def eva(prompt):
    if "Four, please" in prompt:
        return "SCORE=4 REASON=It is what was asked for."
    if "Nine, please" in prompt:
        return "SCORE=9 REASON=It is what was asked for."
    return "It is a fine answer."
