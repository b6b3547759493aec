"""Progress of a long extraction: share done, images per second, time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """A bar on a terminal; elsewhere (a log file, a cluster job) one line every ten seconds.

    Args:
        total: Number of images, or of something else.
        label: What is done.
        enabled: False: say nothing.
        stream: Where to write; standard error if None.
        interval_s: Seconds between lines where there is no terminal.
        unit: What is counted.
    """

    def __init__(
        self,
        total: int,
        label: str,
        enabled: bool = True,
        stream: TextIO | None = None,
        interval_s: float = 10.0,
        unit: str = "images",
    ) -> None:
        self.total = total
        self.unit = unit
        self.label = label
        self.stream = stream or sys.stderr
        self.enabled = enabled and total > 0
        self.is_terminal = self.stream.isatty()
        self.interval_s = 0.2 if self.is_terminal else interval_s
        self.done = 0
        self._start = self._last = time.monotonic()
        self._open_line = False

    def advance(self, images: int) -> None:
        """Count `images` more as done."""
        self.done += images
        now = time.monotonic()
        if self.enabled and now - self._last >= self.interval_s:
            self._last = now
            self._write(self.text(now - self._start))

    def close(self) -> None:
        """End the bar's line; where lines were written, write the last one."""
        if self.enabled and (self._open_line or self._last != self._start):
            self._write(self.text(time.monotonic() - self._start))
            if self._open_line:
                self.stream.write("\n")
                self.stream.flush()
        self.enabled = False

    def text(self, elapsed_s: float) -> str:
        """One line, such as `features 512/1024 images, 71.3 images/s, 0:07 left`."""
        rate = self.done / elapsed_s if elapsed_s > 0 else 0.0
        left = f"{duration((self.total - self.done) / rate)} left" if rate > 0 else "time left unknown"
        share = "" if not self.is_terminal else f"[{'#' * (20 * self.done // self.total):<20}] "
        return f"{self.label} {share}{self.done}/{self.total} {self.unit}, {rate:.1f} {self.unit}/s, {left}"

    def _write(self, line: str) -> None:
        self.stream.write(f"\r{line:<100}" if self.is_terminal else f"{line}\n")
        self.stream.flush()
        self._open_line = self.is_terminal


def duration(seconds: float) -> str:
    """Seconds as minutes or hours.

    Example:
        >>> duration(67), duration(3723)
        ('1:07', '1:02:03')
    """
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
