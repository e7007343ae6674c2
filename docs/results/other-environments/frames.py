"""Put four frames of a video side by side.

fp3o render runs/pursuit --episodes 1 --seconds 5 --out pursuit.gif --trust
python frames.py pursuit.gif pursuit.png
"""

import sys

from PIL import Image, ImageSequence

HEIGHT, GAP, COUNT = 220, 6, 4


def main(video: str, out: str) -> None:
    """Write the first and the last frame of a video, and two between them, as one image."""
    with Image.open(video) as gif:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]
    chosen = [frames[round(i * (len(frames) - 1) / (COUNT - 1))] for i in range(COUNT)]
    width = round(HEIGHT * chosen[0].width / chosen[0].height)
    strip = Image.new("RGB", (COUNT * (width + GAP) - GAP, HEIGHT), "white")
    for i, frame in enumerate(chosen):
        strip.paste(frame.resize((width, HEIGHT), Image.Resampling.LANCZOS), (i * (width + GAP), 0))
    strip.quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
