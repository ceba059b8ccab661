"""Draw the figures of the gallery and keep those that changed: ``python -m tests.views.keep [NAME ...]``.

Look at every picture that changed before it is committed.
"""

from __future__ import annotations

import sys

from tests.views import gallery, pictures


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in gallery.FIGURES]
    if unknown:
        print(f"no such figure: {', '.join(unknown)}; there are {', '.join(gallery.FIGURES)}", file=sys.stderr)
        return 2
    for name in names or gallery.FIGURES:
        figure = gallery.FIGURES[name]()
        problems = pictures.compare(figure, name)
        if problems:
            pictures.keep(figure, name)
            print(f"{pictures.REFERENCES / name}.jpg: {problems[0]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
