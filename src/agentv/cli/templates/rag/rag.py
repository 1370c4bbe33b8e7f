"""The retrieval under test. Replace it with yours: return the answer, and the texts that it was made from."""

DOCUMENTS = [
    "Lamps can be returned within 30 days.",
    "The shop is open on Saturday from 10 to 14.",
    "Parking is free for the first hour.",
]


def words(text: str) -> set[str]:
    """Return the words of a text, without short ones."""
    return {word.strip(".,?!").lower() for word in text.split() if len(word) > 3}


def answer(prompt: str) -> dict:
    """Find the document that has most words of the question, and answer with it."""
    best = max(DOCUMENTS, key=lambda text: len(words(text) & words(prompt)))
    if not words(best) & words(prompt):
        return {"output": "I found nothing about that.", "context": []}
    return {"output": best, "context": [best]}
