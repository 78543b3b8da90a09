"""A server answers every request without an internal error. `fuzzing.py`, run as a program, sends many more."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.serving.fuzzing import requests, send
from tests.serving.process import Server


def test_no_request_causes_an_internal_error_or_hangs(server: Server) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda sent: send(server.port, sent), requests(seed=1, count=250)))
    wrong = [answer for answer in found if answer.status >= 500 or answer.status == 0]
    assert not wrong, wrong[0]
    assert sum(answer.status == 200 for answer in found) > 25  # some requests are valid
    assert max(answer.seconds for answer in found) < 10
    with server.client() as client:
        assert client.get("/health").status_code == 200
    assert "fault" not in server.text


@pytest.mark.slow
def test_answers_conform_to_the_openapi_document(server: Server) -> None:
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    with server.client() as client:
        schema = schemathesis.openapi.from_dict(client.get("/spec").json())
    schema.config.base_url = server.url
    counts = {"/translate": 30, "/translate_file": 10, "/detect": 10, "/classify": 10, "/v1/completions": 10}
    for path, count in [*counts.items(), ("/languages", 2)]:
        operation = schema[path]["GET" if path == "/languages" else "POST"]

        @settings(max_examples=count, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy())
        def check(case: schemathesis.Case) -> None:
            answer = case.call(timeout=20)
            # a schema cannot express that a pair of languages has no model
            case.validate_response(answer, excluded_checks=[positive_data_acceptance])

        check()
