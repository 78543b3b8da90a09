"""Language models behind /v1/completions and /v1/models."""

from __future__ import annotations

import json

import pytest
from tests.serving.process import Server, run_of

from manyheads.inference.generator import GenerateOptions, Generator
from manyheads.search.options import Sampling

PROMPTS = ["ANNA:\n", "BERT:\nIt is", "Who"]


def test_the_client_of_openai_gets_the_samples_of_the_run(server: Server) -> None:
    openai = pytest.importorskip("openai")
    import httpx

    generator = Generator.load(run_of(server, "writer"), device="cpu")
    options = GenerateOptions(sampling=Sampling(temperature=0.8, seed=7), samples=2, max_tokens=20)
    expected = [sample for generation in generator.generate(PROMPTS, options) for sample in generation.samples]
    with (
        httpx.Client(trust_env=False) as own,
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, http_client=own) as client,
    ):
        found = client.completions.create(
            model="writer", prompt=PROMPTS, n=2, max_tokens=20, temperature=0.8, seed=7
        )
        assert [choice.text for choice in found.choices] == [sample.text for sample in expected]
        assert [choice.index for choice in found.choices] == list(range(6))
        assert found.usage.completion_tokens == sum(
            len(sample.tokens) - (sample.ended == "end") for sample in expected
        )
        assert [model.id for model in client.models.list()] == ["writer"]
        greedy = client.completions.create(model="writer", prompt=PROMPTS[0], max_tokens=30, temperature=0)
        stream = client.completions.create(
            model="writer", prompt=PROMPTS[0], max_tokens=30, temperature=0, stream=True
        )
        events = list(stream)
        assert "".join(event.choices[0].text for event in events) == greedy.choices[0].text
        assert [event.choices[0].finish_reason for event in events[:-1]] == [None] * (len(events) - 1)
        assert events[-1].choices[0].finish_reason == greedy.choices[0].finish_reason
        assert len(events) > 3
        with pytest.raises(openai.BadRequestError, match="logprobs is not supported"):
            client.completions.create(model="writer", prompt="a", logprobs=1)


def test_a_completion_ends_before_a_stop_text_and_may_begin_with_the_prompt(server: Server) -> None:
    with server.client() as client:
        body = {"prompt": "ANNA:\n", "max_tokens": 60, "temperature": 0}
        whole = client.post("/v1/completions", json=body).json()["choices"][0]
        stop = whole["text"][5:8]
        ended = client.post("/v1/completions", json=body | {"stop": [stop], "echo": True}).json()["choices"][0]
        end = whole["text"].index(stop)
        assert (ended["text"], ended["finish_reason"]) == ("ANNA:\n" + whole["text"][:end], "stop")
        lines = (
            client.post("/v1/completions", json=body | {"stop": stop, "stream": True}).text.strip().split("\n\n")
        )
    assert lines[-1] == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert "".join(event["choices"][0]["text"] for event in events) == whole["text"][:end]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0}, {"max_tokens": 10**9}, {"temperature": -1}, {"temperature": 3}, {"top_p": 0}, {"n": 17},
        {"n": 2, "stream": True}, {"stop": ["a"] * 5}, {"stop": [""]}, {"prompt": [1, 2]}, {"seed": -1},
        {"logit_bias": {"1": 2}}, {"stream": "yes"}, {"temperature": "warm"}, {"best_of": 3},
    ],
)  # fmt: skip
def test_an_invalid_request_is_refused_with_a_message(server: Server, wrong: dict[str, object]) -> None:
    with server.client() as client:
        answer = client.post("/v1/completions", json={"prompt": "a", "max_tokens": 4} | wrong)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


def test_a_client_that_disconnects_from_a_stream_frees_the_worker(server: Server) -> None:
    with server.client() as client:
        body = {"prompt": "a", "max_tokens": 4096, "temperature": 1, "stream": True}
        for _ in range(3):
            with client.stream("POST", "/v1/completions", json=body) as answer:
                assert next(answer.iter_lines()).startswith("data: ")
        assert client.post("/v1/completions", json={"prompt": "a", "max_tokens": 4}).status_code == 200
