"""A refusal in one line, however long the input that it quotes."""

LONGEST = 500


def one_line(text: str) -> str:
    """The text without line breaks; of a long one the start and the way out at its end."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
