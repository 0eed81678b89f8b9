"""What clients asked and were told, and whether that can be true."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class History:
    """`told` is, of each nonce that was to be executed, what its client heard: `result`, `no`, `unknown` or nothing."""

    told: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    operations: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def judged(self, executed: Path) -> list[str]:
        """Everything that must not be, now that it is over."""
        times = Counter(executed.read_text().split())
        twice = [f"{nonce} was executed {count} times" for nonce, count in times.items() if count > 1]
        unknown = [f"{nonce} was executed, and nobody asked for it" for nonce in times if nonce not in self.told]
        lied = [
            f"{nonce} was told to be {outcome!r}, and was executed {times[nonce]} times"
            for nonce, outcome in self.told.items()
            if (outcome == "result" and not times[nonce]) or (outcome == "no" and times[nonce])
        ]
        return [*self.wrong, *twice, *unknown, *lied]
