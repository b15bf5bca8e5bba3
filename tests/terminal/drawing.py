"""Draw the screen of a terminal as an SVG picture, in a light and a dark theme."""

import html
import re

THEMES = {  # the palettes of GNOME Terminal
    "light": {
        "background": "#ffffff",
        "frame": "#d0d0d0",
        "default": "#171421",
        "red": "#c01c28",
        "green": "#26a269",
        "brown": "#a2734c",
        "magenta": "#a347ba",
        "cyan": "#2aa1b3",
    },
    "dark": {
        "background": "#171421",
        "frame": "#3d3846",
        "default": "#d0cfcc",
        "red": "#f66151",
        "green": "#33d17a",
        "brown": "#e9ad0c",
        "magenta": "#c061cb",
        "cyan": "#33c7de",
    },
}
_DIM = 0.65  # opacity
_WIDTH, _HEIGHT, _MARGIN = 8.4, 18, 16  # of a cell and around the screen, in pixels
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def svg(screen, theme, prompt):
    """Draw a `Screen` in one of `THEMES`, below the line ``prompt`` with the command."""
    colors = THEMES[theme]
    height = (len(screen.rows) + 1) * _HEIGHT + 2 * _MARGIN
    width = round(screen.columns * _WIDTH) + 2 * _MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        f'     font-family="{_FONTS}" font-size="14" fill="{colors["default"]}">',
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"',
        f'      fill="{colors["background"]}" stroke="{colors["frame"]}"/>',
        _text(prompt, 0, 0, 'font-weight="bold"'),
    ]
    for number, row in enumerate(screen.rows, 1):
        column = 0
        for text, style in row:
            # Fonts differ in width, so each group of words has its own place and length.
            for words in re.finditer(r"\S+(?: \S+)*", text):
                lines.append(_text(words[0], column + words.start(), number, _attributes(style, colors)))
            column += len(text)
    return "\n".join([*lines, "</svg>", ""])


def contrast(style, colors):
    """The contrast of text to the background of a theme, as WCAG defines it: 1 to 21."""
    text, background = (_rgb(colors[name]) for name in (style.color, "background"))
    if style.dim:
        text = [_DIM * a + (1 - _DIM) * b for a, b in zip(text, background, strict=True)]
    low, high = sorted((_luminance(text), _luminance(background)))
    return (high + 0.05) / (low + 0.05)


def _rgb(color):
    return [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]


def _luminance(rgb):
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _attributes(style, colors):
    return " ".join(
        filter(
            None,
            (
                "" if style.color == "default" else f'fill="{colors[style.color]}"',
                'font-weight="bold"' if style.bold else "",
                f'opacity="{_DIM}"' if style.dim else "",
                'font-style="italic"' if style.italic else "",
            ),
        )
    )


def _text(words, column, row, attributes):
    """Draw words at a cell."""
    x, y, length = _MARGIN + column * _WIDTH, _MARGIN + row * _HEIGHT + 14, len(words) * _WIDTH
    place = f'x="{x:.1f}" y="{y}" textLength="{length:.1f}"'
    return f"<text {' '.join(filter(None, (place, attributes)))}>{html.escape(words, quote=False)}</text>"
