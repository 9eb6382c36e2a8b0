# SPDX-License-Identifier: Apache-2.0
"""Pictures as files of their own: SVG, and PNG where rsvg-convert (Debian: librsvg2-bin) is installed."""

import pathlib
import shutil
import subprocess

from results import Fault

PNG_SCALE = 1.4


def write_all(pictures, folder):
    """Writes the pictures, and returns what was left out, in words."""
    place = pathlib.Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        convert = shutil.which("rsvg-convert")
        for name, picture in pictures.items():
            drawing = place / f"{name}.svg"
            drawing.write_text(picture.standalone(), encoding="utf-8")
            if convert:
                width = str(round(picture.width * PNG_SCALE))
                subprocess.run(
                    [convert, "--width", width, "--output", str(drawing.with_suffix(".png")), str(drawing)], check=True
                )
    except OSError as fault:
        raise Fault(f"--images: {fault.filename or folder}: {fault.strerror}") from None
    except subprocess.CalledProcessError as fault:
        raise Fault(f"--images: rsvg-convert failed with {fault.returncode}") from None
    return "" if convert else "no PNG was written, since rsvg-convert (Debian: librsvg2-bin) was not found"
