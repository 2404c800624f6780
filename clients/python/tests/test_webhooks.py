"""Verification of webhooks: clients/cases/webhooks.json."""

from __future__ import annotations

from typing import Any

import pytest

from playing import case_id, cases, has
from waypost.webhooks import WebhookError, verify


@pytest.mark.parametrize("case", cases("webhooks"), ids=case_id)
def test_a_delivery_is_believed_or_not(case: dict[str, Any]) -> None:
    expected = case["expect"]
    try:
        delivery = verify(
            case["body"].encode(),
            case["headers"],
            case["secrets"],
            now=case["now"],
            tolerance=case.get("toleranceSeconds", 300),
        )
    except WebhookError as error:
        assert error.reason == expected.get("invalid")
    else:
        assert has({**delivery.body, "id": delivery.id}, expected["valid"])
