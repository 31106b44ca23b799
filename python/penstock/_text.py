"""Names and values as messages show them: printable, and not too long."""

from __future__ import annotations


def abbreviated(name: str, most: int = 80) -> str:
    """A name, printable. The middle of a long one becomes "..."."""
    if len(name) > most:
        name = f"{name[: most * 5 // 8]}...{name[-(most * 3 // 8 - 4) :]}"
    return name if name.isprintable() else repr(name)[1:-1]


def listed(names: list[str], *, separator: str = ", ", most: int = 20, most_characters: int = 80) -> str:
    """The first names, and how many more there are."""
    shown = separator.join(abbreviated(name, most_characters) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def plural(count: int, what: str) -> str:
    """ "1 sample", "2 samples"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def shown(value: object, most: int = 80) -> str:
    """An argument in one line: its repr, of which a long one has "..." in its middle. It never raises."""
    import reprlib

    if isinstance(value, (bytes, bytearray, str)) and len(value) > most:
        value = value[:most]  # so that no long text is made of it first
        text = f"{value!r}..."
    else:
        short = reprlib.Repr()
        short.maxstring = short.maxother = short.maxlong = most
        text = short.repr(value)
    return text if text.isprintable() else repr(text)[1:-1]
