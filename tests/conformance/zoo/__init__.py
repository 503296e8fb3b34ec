"""Models with known answers, one file per field."""

from __future__ import annotations

from conformance.entry import Entry
from conformance.zoo import algebra, believed, biology, electrical, mechanics, refused, static, tanks, thermal

ROOMS = (tanks, thermal, electrical, mechanics, biology, static, algebra, believed, refused)
ZOO: dict[str, Entry] = {e.name: e for room in ROOMS for e in room.ENTRIES}
