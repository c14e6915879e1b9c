"""The faults of planted_faults.py can be planted."""

from __future__ import annotations

import planted_faults
import pytest
from planted_faults import FAULTS, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_faults_can_be_planted(fault: Fault) -> None:
    planted_faults.check(fault)


def test_each_fault_has_a_name_of_its_own() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
